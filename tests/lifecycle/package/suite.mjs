/** Tests of the installed package for any runtime. It finds no global of Node or Deno. */

import assert from "node:assert/strict";

const report = console.log;
delete globalThis.Deno;
delete globalThis.process;
const { definePolicy, inspect, momentAt, PolicyError, withLifecycle } = await import(
  "@media-head/lifecycle"
);

const policy = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: new Date("2027-06-30"),
  brownouts: ["2027-03-01T09:00Z/PT1H"],
});
const PHASES = [
  [
    "2026-12-31T23:59:00Z",
    "announced",
    200,
    "max-age=59, must-revalidate, stale-while-revalidate=0",
  ],
  ["2027-02-01", "deprecated", 200, "max-age=60, must-revalidate, stale-while-revalidate=0"],
  ["2027-03-01T09:30:00Z", "brownout", 503, "no-store"],
  ["2027-06-30", "removed", 410, "max-age=300"],
];
for (const [at, phase, status, cacheControl] of PHASES) {
  const now = Date.parse(at);
  assert.equal(momentAt(policy, now).phase, phase);
  const counted = [];
  const handle = withLifecycle(
    ({ method }) =>
      new Response(method === "HEAD" ? null : "old", {
        headers: { "Cache-Control": "max-age=60", "Content-Length": "3" },
      }),
    policy,
    {
      clock: () => now,
      successor: () => "/v2/x",
      route: () => "/v1/:id",
      onCount: (call) => counted.push(call),
    },
  );
  const [head, get] = await Promise.all(["HEAD", "GET"].map((method) => {
    const headers = { "User-Agent": "curl/8.1" };
    return handle(new Request("https://example.com/v1/x", { method, headers }));
  }));
  assert.deepEqual([head.status, await head.text()], [status, ""]);
  assert.equal(get.status, status);
  assert.deepEqual(
    [...head.headers].filter(([name]) => name !== "content-type"),
    [...get.headers]
      .filter(([name]) => name !== "content-type"),
  );
  assert.equal(get.headers.get("cache-control"), cacheControl);
  const call = { route: "/v1/:id", phase, status, client: "curl", breaks: true };
  assert.deepEqual(counted, [call, call]);
  const { faults, ...said } = inspect(get, { url: "https://example.com/v1/x", now });
  assert.deepEqual([faults, said.sunsetAt], [[], policy.sunsetAt]);
  assert.deepEqual(said.links.get("successor-version"), ["https://example.com/v2/x"]);
}
assert.throws(() => definePolicy({ deprecatedAt: "soon" }), PolicyError);
const { faults } = inspect(new Response("", { headers: { Sunset: "soon" } }));
assert.deepEqual(faults.map(({ name }) => name), ["invalid-sunset"]);
report("passed");
