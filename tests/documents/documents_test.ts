import { assert, assertEquals } from "@std/assert";
import { representDocument } from "../../lib/documents/documents.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { ROUTES, underPolicy } from "../support/routes.ts";

Deno.test("representDocument() generates the OpenAPI description once", async () => {
  const config = underPolicy(definePolicy({ deprecatedAt: "2027-01-01" }));
  const represent = (now: number) =>
    representDocument("description", new Headers(), { routes: ROUTES, config, now });
  assert(await represent(0) === await represent(1));
});

Deno.test("representDocument() describes how to reach server and operator, if that is known", async () => {
  const policy = definePolicy({ deprecatedAt: "2027-01-01" });
  const described = async (addresses: { publicUrl?: string; contact?: string }) => {
    const options = { routes: ROUTES, config: { ...underPolicy(policy), ...addresses }, now: 0 };
    const { open } = await representDocument("description", new Headers(), options);
    const { servers, info } = await new Response(await open()).json();
    return [servers, info.contact];
  };
  const [url, name] = ["https://media.example.com", "The operator of this server"];
  assertEquals(await described({ publicUrl: url, contact: `${url}/help` }), [
    [{ url }],
    { name, url: `${url}/help` },
  ]);
  assertEquals(await described({ contact: "mailto:ops@example.com?subject=media" }), [
    [{ url: "/" }],
    { name, email: "ops@example.com" },
  ]);
  assertEquals(await described({}), [[{ url: "/" }], undefined]);
});
