import { assert, assertEquals } from "@std/assert";
import { representDocument } from "../../lib/documents/documents.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { ROUTES } from "../support/routes.ts";

Deno.test("representDocument() generates the OpenAPI description once", async () => {
  const config = { policy: definePolicy({ deprecatedAt: "2027-01-01" }) };
  const represent = (now: number) =>
    representDocument("description", new Headers(), { routes: ROUTES, config, now });
  assert(await represent(0) === await represent(1));
});

Deno.test("representDocument() describes where clients reach the server, if that is known", async () => {
  const policy = definePolicy({ deprecatedAt: "2027-01-01" });
  const serversAt = async (publicUrl?: string) => {
    const options = { routes: ROUTES, config: { policy, publicUrl }, now: 0 };
    const { open } = await representDocument("description", new Headers(), options);
    return (await new Response(await open()).json()).servers;
  };
  const url = "https://media.example.com";
  assertEquals(await serversAt(url), [{ url }]);
  assertEquals(await serversAt(), [{ url: "/" }]);
});
