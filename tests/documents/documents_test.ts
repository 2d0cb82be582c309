import { assertEquals, assertRejects } from "@std/assert";
import { representDocument } from "../../lib/documents/documents.ts";
import type { DocumentOptions } from "../../lib/server/assembly.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { ROUTES } from "../../main.ts";

Deno.test("representDocument() retries after a failure, then generates the OpenAPI description once", async () => {
  const policy = definePolicy({ deprecatedAt: "2027-01-01" });
  const request = new Request("http://test/openapi.json");
  const represent = (routes: DocumentOptions["routes"]) =>
    representDocument("description", request, { routes, policy, now: 0 });
  const failing = new Proxy(ROUTES, {
    get() {
      throw new TypeError("bug");
    },
  });
  await assertRejects(() => represent(failing), TypeError, "bug");
  const description = await represent(ROUTES);
  assertEquals(await represent(failing), description); // not generated again
});
