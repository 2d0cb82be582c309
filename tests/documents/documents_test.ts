import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { representDocument } from "../../lib/documents/documents.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { DocumentName } from "../../lib/server/route.ts";
import { ROUTES } from "../support/routes.ts";

Deno.test("representDocument() generates the OpenAPI description once", async () => {
  const config = { policy: definePolicy({ deprecatedAt: "2027-01-01" }) };
  const represent = (now: number) =>
    representDocument("description", new Headers(), { routes: ROUTES, config, now });
  assert(await represent(0) === await represent(1));
});

Deno.test("representDocument() states where clients reach the server, if that is known", async () => {
  const policy = definePolicy({ deprecatedAt: "2027-01-01" });
  const textAt = async (document: DocumentName, publicUrl?: string) => {
    const options = { routes: ROUTES, config: { policy, publicUrl }, now: 0 };
    const { open } = await representDocument(document, new Headers(), options);
    return await new Response(await open()).text();
  };
  const url = "https://media.example.com";
  const notice = await textAt("notice", url);
  for (const command of ["curl -I", 'curl -H "Accept: application/json"']) {
    assertStringIncludes(notice, `${command} ${url}/`);
  }
  assert(!notice.includes("{origin}"));
  assertStringIncludes(await textAt("notice"), "{origin}");
  assertEquals(JSON.parse(await textAt("description", url)).servers, [{ url }]);
  assertEquals(JSON.parse(await textAt("description")).servers, [{ url: "/" }]);
});
