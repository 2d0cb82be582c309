/**
 * Retires all that a plain server answers. Run it with `deno run --allow-net`.
 */

import { definePolicy, withLifecycle } from "@media-head/lifecycle";

const policy = definePolicy({
  deprecatedAt: "2026-11-21",
  sunsetAt: "2100-06-30",
  brownouts: ["2100-05-03T09:00Z/PT1H"],
  documentation: "https://example.com/deprecation",
});

const handler = withLifecycle(() => Response.json({ version: 1 }), policy, {
  successor: (request) => new URL(request.url).pathname.replace("/v1/", "/v2/"),
});

if (import.meta.main) Deno.serve(handler);
export default handler;
