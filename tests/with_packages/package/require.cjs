// require() and import give the same library: a second one would not know the first one's responses.

const assert = require("node:assert/strict");
const required = require("@media-head/lifecycle");

async function main() {
  for (const name of ["@media-head/lifecycle", "@media-head/lifecycle/usage"]) {
    const [one, other] = [require(name), await import(name)];
    assert.ok(Object.keys(one).length > 0);
    for (const member of Object.keys(one)) assert.equal(one[member], other[member], member);
  }
  const imported = await import("@media-head/lifecycle");
  assert.throws(() => required.definePolicy({}), imported.PolicyError);

  const policy = required.definePolicy({ deprecatedAt: "2026-11-21", documentation: "/why" });
  const kept = new Response(null, { status: 204 });
  const [successor, url] = [({ url }) => new URL(url).pathname + "/new", "http://a.example"];
  for (const { withLifecycle } of [required, imported]) {
    for (const path of ["/1", "/2"]) {
      const answer = withLifecycle(() => kept, policy, { successor });
      const { headers } = await answer(new Request(url + path));
      const links = `<${path}/new>; rel="successor-version", </why>; rel="deprecation"`;
      assert.equal(headers.get("link"), links);
    }
  }
  console.log("passed");
}

main();
