import { assert, assertEquals } from "@std/assert";
import { representDocument } from "../../lib/documents/documents.ts";
import { underHolds } from "../../lib/lifecycle/hold.ts";
import type { RoutePolicies } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { ROUTES, underPolicy } from "../support/routes.ts";

Deno.test("representDocument() generates the OpenAPI description once, and anew under a hold", async () => {
  const config = underPolicy(definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30" }));
  const represent = (policies: RoutePolicies) =>
    representDocument("description", new Headers(), { routes: ROUTES, config, policies, now: 0 });
  const first = await represent(config.policies);
  assert(await represent(config.policies) === first);
  const [start, end] = [Date.parse("2027-06-20"), Date.parse("2027-07-10")];
  const hold = { start, end, because: "a", route: "/audio/:token" };
  const held = underHolds(config.policies, [hold]);
  const description = await represent(held);
  const { paths } = await new Response(await description.open()).json();
  const sunsets = ["audio", "video"].map((kind) => paths[`/${kind}/{token}`].head["x-sunset"]);
  assertEquals(sunsets, ["2027-07-10", "2027-06-30"]);
  assert(await represent(held) === description);
});

Deno.test("representDocument() describes how to reach server and operator, if that is known", async () => {
  const policy = definePolicy({ deprecatedAt: "2027-01-01" });
  const described = async (addresses: { publicUrl?: string; contact?: string }) => {
    const config = { ...underPolicy(policy), ...addresses };
    const options = { routes: ROUTES, config, policies: config.policies, now: 0 };
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
