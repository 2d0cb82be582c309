import { assertEquals } from "@std/assert";
import type { Phase } from "../../lib/lifecycle/policy.ts";
import { impactOf } from "../../lib/server/impact.ts";

const CALL = { method: "HEAD", phase: "deprecated" as Phase, status: 200, hasToken: true };

Deno.test("impactOf() is breaking exactly for calls that the removal breaks", () => {
  const rows: [change: Partial<typeof CALL>, impact: "breaking" | "none"][] = [
    ...[200, 206, 304, 307, 412, 416, 500, 502, 503].map((status) =>
      [{ status }, "breaking"] as [Partial<typeof CALL>, "breaking"]
    ),
    ...[404, 410].map((status) => [{ status }, "none"] as [Partial<typeof CALL>, "none"]),
    [{ method: "GET" }, "breaking"],
    [{ method: "OPTIONS" }, "none"],
    [{ method: "POST", status: 405 }, "none"],
    [{ status: 400, hasToken: false }, "none"],
    [{ phase: "announced" }, "breaking"],
    [{ phase: "brownout", status: 503 }, "breaking"],
    [{ phase: "brownout", status: 410 }, "breaking"],
    [{ phase: "brownout", status: 503, hasToken: false }, "none"],
    [{ phase: "brownout", method: "OPTIONS" }, "none"],
    [{ phase: "removed", status: 410 }, "breaking"],
    [{ phase: "removed", status: 308 }, "breaking"],
    [{ phase: "removed", status: 410, hasToken: false }, "none"],
    [{ phase: "removed", status: 405, method: "POST" }, "none"],
    [{ phase: "removed", status: 204, method: "OPTIONS" }, "none"],
  ];
  for (const [change, impact] of rows) {
    assertEquals(impactOf({ ...CALL, ...change }), impact, JSON.stringify(change));
  }
});
