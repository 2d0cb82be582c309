// Runs from the tarball: a request of Azure Functions has no signal, whatever the handler does.

const { HttpRequest } = require("@azure/functions");
const { definePolicy, withLifecycle } = require("@media-head/lifecycle");
const assert = require("node:assert/strict");

const policy = definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30" });
const bug = new TypeError("bug");
const slowly = () => new Promise((resolve) => setTimeout(resolve, 150));
const rows = [
  ["2027-02-01", async () => (await slowly(), new Response("old")), 200],
  ["2027-02-01", () => Promise.reject(bug), 500],
  ["2027-02-01", async () => {
    await slowly();
    throw bug;
  }, 500],
  ["2027-07-01", () => assert.fail("not refused"), 410],
];
(async () => {
  for (const [at, handler, expected] of rows) {
    for (const method of ["GET", "HEAD"]) {
      const counted = [];
      const retired = withLifecycle(handler, policy, {
        successor: ({ url }) => url.replace("v1", "v2"),
        onCount: ({ status, client }) => counted.push([status, client]),
        clock: () => Date.parse(at),
      });
      const headers = { "User-Agent": "curl/8" };
      const request = new HttpRequest({ method, url: "https://a.example/v1/songs", headers });
      assert.equal(request.signal, undefined);
      const calling = retired(request);
      if (expected === 500) await assert.rejects(calling, bug);
      else {
        const response = await calling;
        assert.equal(response.status, expected);
        assert.equal(response.headers.get("link"), '</v2/songs>; rel="successor-version"');
        if (method === "HEAD" && expected === 410) assert.equal(response.body, null);
      }
      assert.deepEqual(counted, [[expected, "curl"]]);
    }
  }
  console.log("passed");
})();
