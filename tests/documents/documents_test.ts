import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { type DocumentOptions, representDocument } from "../../lib/documents/documents.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { DocumentName } from "../../lib/server/route.ts";
import { ROUTES } from "../support/routes.ts";

Deno.test("representDocument() retries after a failure, then generates the OpenAPI description once", () => {
  const config = { policy: definePolicy({ deprecatedAt: "2027-01-01" }) };
  const headers = new Headers();
  const represent = (routes: DocumentOptions["routes"]) =>
    representDocument("description", headers, { routes, config, now: 0 });
  const failing = new Proxy(ROUTES, {
    get() {
      throw new TypeError("bug");
    },
  });
  assertThrows(() => represent(failing), TypeError, "bug");
  const description = represent(ROUTES);
  assertEquals(represent(failing), description); // not generated again
});

Deno.test("representDocument() states where clients reach the server, if that is known", async () => {
  const policy = definePolicy({ deprecatedAt: "2027-01-01" });
  const textAt = async (document: DocumentName, publicUrl?: string) => {
    const options = { routes: ROUTES, config: { policy, publicUrl }, now: 0 };
    const { open } = representDocument(document, new Headers(), options);
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
