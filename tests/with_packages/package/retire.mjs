// Runs from the tarball: whatever an application on node:http sets, in whatever way, the announcement
// is sent once, nothing of the application's is lost, and nothing stays fresh beyond the phase.

import assert from "node:assert/strict";
import { Agent, createServer, request } from "node:http";
import * as http2 from "node:http2";
import { Readable } from "node:stream";
import fc from "fast-check";
import {
  announcementFields,
  definePolicy,
  inspect,
  limitFreshness,
  retire,
  withLifecycle,
} from "@media-head/lifecycle";

const policy = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-30",
  documentation: "/why",
});
const now = policy.sunsetAt - 100_000;
const successor = ({ url }) => new URL(url).pathname.replace("/v1/", "/v2/");
const retired = retire(policy, { successor, clock: () => now });
const OURS = Object.fromEntries(announcementFields(policy, "/v2/a"));

const listen = async (server) => {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
};
const close = (server) => {
  server.close();
  server.closeAllConnections?.();
};
const agent = new Agent({ keepAlive: true });

/** Sends a request; resolves with its response, but for Date. */
function send(port, { path = "/v1/a", ...options }) {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: "127.0.0.1", path, agent, ...options }, async (response) => {
      let text = "";
      for await (const part of response) text += part;
      const { statusCode, statusMessage, rawHeaders } = response;
      const fields = rawHeaders.flatMap((name, i) =>
        i % 2 || name === "Date" ? [] : [[name.toLowerCase(), rawHeaders[i + 1]]]
      );
      resolve({ status: statusCode, reason: statusMessage, text, fields });
    });
    sent.setTimeout(5000, () => sent.destroy(new Error("no response")));
    sent.on("error", reject).end();
  });
}

/** Does one thing with a response. */
function act(response, [verb, ...args]) {
  if (verb === "early") return response.writeEarlyHints({ link: "</a.css>; rel=preload" });
  if (verb === "statusCode" || verb === "statusMessage") return void (response[verb] = args[0]);
  if (verb === "setHeaders") return response.setHeaders(new Map(args));
  if (verb === "stream") return void Readable.from(args).pipe(response);
  response[verb](...args);
}

const VALUES = {
  "Cache-Control": ["max-age=9999", "public", "s-maxage=5, private", "no-store", "max-age=5"],
  "CDN-Cache-Control": ["max-age=9999"],
  "Surrogate-Control": ["max-age=9999+60"],
  "Edge-Control": ["cache-maxage=1d", "!no-store, max-age=60"],
  "X-Accel-Expires": ["9999", "@1900000000"],
  "Expires": ["Wed, 30 Jun 2028 00:00:00 GMT", "0"],
  "Link": ['</a>; rel="next"', '<b>; rel=prev; title="x, y"', OURS.Link],
  "Deprecation": ["true"],
  "Sunset": ["soon"],
  "Access-Control-Expose-Headers": ["*", "X-A, Link"],
  "Access-Control-Allow-Origin": ["*"],
  "Set-Cookie": ["a=1", "b=2; Expires=Wed, 30 Jun 2028 00:00:00 GMT"],
  "ETag": ['"a"'],
  "X-A": ["1", "é", "x, y"],
};
const name = fc.constantFrom(...Object.keys(VALUES));
const valueOf = (name) => fc.constantFrom(...VALUES[name]);
const pair = name.chain((name) =>
  fc.tuple(fc.constantFrom(name, name.toLowerCase(), name.toUpperCase()), valueOf(name))
);
const pairs = fc.array(pair, { maxLength: 5 });
const unique = fc.uniqueArray(pair, { maxLength: 5, selector: ([name]) => name.toLowerCase() });
const list = name.chain((name) =>
  fc.tuple(fc.constant(name), fc.array(valueOf(name), { minLength: 1, maxLength: 3 }))
);
const status = fc.constantFrom(200, 201, 204, 304, 404, 500);
const step = fc.oneof(
  fc.tuple(fc.constantFrom("setHeader", "appendHeader"), fc.oneof(pair, list)).map((one) =>
    one.flat(1)
  ),
  fc.tuple(fc.constant("removeHeader"), name),
  fc.tuple(fc.constant("statusCode"), status),
  unique.map((pairs) => ["setHeaders", ...pairs]),
  fc.constantFrom(["statusMessage", "Fine"], ["early"], ["setHeader", "X-Number", 5]),
);
// With fields set before, Node 20 takes no list of pairs, and of repeated names only the last.
const merged = fc.oneof(
  unique.map((pairs) => [Object.fromEntries(pairs)]),
  unique.map((pairs) => [pairs.flat()]),
  list.map((one) => [Object.fromEntries([one])]),
  fc.constant([]),
);
const alone = fc.oneof(
  merged,
  pairs.map((pairs) => [Object.fromEntries(pairs)]),
  pairs.map((pairs) => [pairs.flat()]),
  pairs.map((pairs) => [pairs]),
);
const writeHead = (given) =>
  // Express 4 passes on a status that is a text.
  fc.tuple(fc.oneof(status, fc.constant("200")), fc.constantFrom([], ["Fine"], [undefined]), given)
    .map(([status, reason, given]) => [["writeHead", status, ...reason, ...given]]);
const content = fc.constantFrom(
  [["end"]],
  [["end", "text"]],
  [["write", "te"], ["end", "xt"]],
  [["stream", "te", "xt"]],
);
const implicit = fc.constantFrom([], [["flushHeaders"]]);
const applications = fc.oneof(
  fc.tuple(fc.array(step, { maxLength: 6 }), fc.oneof(implicit, writeHead(merged)), content),
  fc.tuple(writeHead(alone), content),
).map((parts) => parts.flat());

let application = [];
const server = createServer((request, response) => {
  const run = () => structuredClone(application).forEach((step) => act(response, step));
  request.headers["x-plain"] ? run() : retired(request, response, run);
});
const port = await listen(server);

/** The values of each field, as one. */
const joined = (fields) => {
  const all = new Map();
  for (const [name, value] of fields) all.set(name, [...all.get(name) ?? [], value]);
  return new Map([...all].map(([name, values]) => [name, values.join(", ")]));
};
const LISTS = {
  "link": OURS.Link.split(", "),
  "access-control-expose-headers": ["Deprecation", "Link", "Retry-After", "Sunset"],
};
await fc.assert(
  fc.asyncProperty(applications, fc.constantFrom("GET", "HEAD", "POST"), async (steps, method) => {
    application = steps;
    const plain = await send(port, { method, headers: { "X-Plain": "1" } });
    const said = await send(port, { method });
    assert.deepEqual([said.status, said.reason, said.text], [
      plain.status,
      plain.reason,
      plain.text,
    ]);
    const [theirs, all] = [joined(plain.fields), joined(said.fields)];
    // Each field is as it was, in as many lines, but for those of the announcement and of caching.
    const limited = joined(
      limitFreshness([...theirs], {
        ...{ until: policy.sunsetAt, now, method, isAuthorized: false },
        status: said.status,
      }).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const expected = new Map([...theirs, ...limited])
      .set("deprecation", OURS.Deprecation).set("sunset", OURS.Sunset);
    for (const [name, ours] of Object.entries(LISTS)) {
      // Of the values in this test, those of the policy are distinct, and none contains another.
      const given = ours.reduce(
        (given, one) => given.replace(`, ${one},`, ","),
        `, ${theirs.get(name) ?? ""},`,
      ).slice(2, -1);
      // Beside another announcement, which is not valid here, the policy's links come first.
      const isFirst = name === "link" && theirs.has("deprecation");
      const merged = isFirst ? [...ours, given] : [given, ...ours];
      expected.set(name, merged.filter(Boolean).join(", "));
    }
    assert.deepEqual([...all].sort(), [...expected].sort());
    const isKept = (name) => !(name in LISTS) && theirs.get(name) === all.get(name);
    const kept = ({ fields }) => fields.filter(([name]) => isKept(name));
    assert.deepEqual(kept(said).sort(), kept(plain).sort());
  }),
  { numRuns: 300 },
);
close(server);

// What options see, whatever the client sends, and what is counted.
const seen = [];
let next = (_, response) => response.end("old");
const look = (request) => void seen.push([request.method, request.url, request.headers.get("x-a")]);
const counted = retire(policy, {
  successor: look,
  clock: () => now,
  onCount: ({ status, client }, _, incoming, outgoing) =>
    seen.push([status, client, incoming.method, outgoing.headersSent]),
});
const other = createServer((request, response) => {
  if (request.headers["x-original"]) {
    Object.assign(request, { originalUrl: request.url, url: "/" }); // as Express does
  }
  return counted(request, response, () => next(request, response));
});
const at = await listen(other);
const rows = [
  [{ method: "TRACE" }, `http://127.0.0.1:${at}/v1/a`],
  [{ method: "REPORT", path: "//evil/v1" }, `http://127.0.0.1:${at}//evil/v1`],
  [{ method: "GET", path: "http://b.example/v1" }, "http://b.example/v1"],
  [{ method: "GET", headers: { Host: "evil/v9?" } }, "http://localhost/v1/a"],
  [{ method: "GET", headers: { Host: "c.example:81" } }, "http://c.example:81/v1/a"],
  [{ method: "GET", headers: { "X-Original": "1" } }, `http://127.0.0.1:${at}/v1/a`],
];
for (const [{ headers, ...options }, url] of rows) {
  const fields = { "User-Agent": "curl/8", "X-A": "é", ...headers };
  assert.equal((await send(at, { ...options, headers: fields })).status, 200);
  const { method } = options;
  assert.deepEqual(seen.splice(0), [[method, url, "é"], [200, "curl", method, true]]);
}
next = (request, response) => { // a response that was sent, which a second retire() leaves alone
  response.end("old");
  counted(
    request,
    response,
    () => assert.throws(() => response.writeHead(200), /ERR_HTTP_HEADERS/),
  );
};
assert.equal((await send(at, { method: "GET" })).status, 200);
assert.equal(seen.length, 2);
next = (_, response) => { // whose error page comes after a head that could not be sent
  assert.throws(() => response.writeHead(200, "a\nreason", { "X-B": "1" }), /ERR_INVALID_CHAR/);
  response.writeHead(500, "Error").end();
};
const { status: failed, fields } = await send(at, { method: "GET" });
assert.deepEqual([failed, seen.at(-1)[0]], [500, 500]);
assert.equal(fields.filter(([name]) => name === "deprecation").length, 1);
// A client that closes the connection before the head is sent is counted once.
let late;
const ended = new Promise((resolve) => {
  next = (_, response) => {
    late = response;
    response.once("close", resolve);
    leaving.destroy();
  };
});
const leaving = request({ port: at, host: "127.0.0.1", path: "/v1/a" });
leaving.on("error", () => {}).end();
await ended;
seen.splice(0, seen.length - 1);
late.end("old");
assert.deepEqual(seen.map(([status]) => status), [0]);
close(other);

// A refusal keeps what was set before, except what permits caches, or is for one user or of the content.
const SET = {
  ...{ "Cache-Control": "max-age=9999", "Expires": VALUES["Expires"][0], "X-A": "1" },
  ...{ "CDN-Cache-Control": "max-age=9999", "Surrogate-Control": "max-age=9999" },
  ...{ "X-Accel-Expires": "9999", "Access-Control-Allow-Origin": "https://a.example" },
  ...{ "Edge-Control": "max-age=9999", "Set-Cookie": ["a=1", "b=2"], "Age": "60" },
  ...{ "Content-Encoding": "gzip", "Vary": ["Origin", "X-Version"] },
};
const RESTRICTING = {
  ...{ "Cache-Control": ["max-age=9999", "private"], "CDN-Cache-Control": "no-cache, max-age=9" },
  ...{ "X-Accel-Expires": 0 },
};
const PERMITTED = {
  ...{ "cache-control": "no-store, no-transform", "cdn-cache-control": undefined },
  ...{ "x-accel-expires": undefined },
};
const RESTRICTED = {
  ...{ "cache-control": "no-store, no-transform, private, no-cache", "x-accel-expires": "0" },
  ...{ "cdn-cache-control": "no-store, no-transform, private, no-cache" },
};
const nested = definePolicy({ deprecatedAt: "2026-11-21", sunsetAt: "2028-06-30" });
for (
  const [policyAround, set, expected] of [
    [policy, {}, PERMITTED],
    [policy, RESTRICTING, RESTRICTED],
    [nested, {}, PERMITTED],
    [nested, RESTRICTING, RESTRICTED],
  ]
) {
  const clock = () => policy.sunsetAt;
  const inner = retire(policy, { successor, clock });
  const outer = retire(policyAround, { successor, clock });
  const refusing = createServer((request, response) => {
    for (const [name, value] of Object.entries({ ...SET, ...set })) response.setHeader(name, value);
    outer(request, response, () => inner(request, response, () => assert.fail("not refused")));
  });
  const { status, fields } = await send(await listen(refusing), { method: "GET" });
  const said = Object.fromEntries(joined(fields));
  assert.equal(status, 410);
  const dropped = ["surrogate-control", "expires", "edge-control", "set-cookie", "age"];
  assert.deepEqual([...dropped, "content-encoding"].filter((name) => name in said), []);
  for (const [name, value] of Object.entries(expected)) assert.equal(said[name], value, name);
  assert.deepEqual([said["x-a"], said.vary], ["1", "Origin, X-Version"]);
  assert.equal(said["access-control-allow-origin"], "https://a.example");
  assert.deepEqual([said.sunset, said.deprecation], [OURS.Sunset, OURS.Deprecation]);
  close(refusing);
}

// HTTP/2 has names in lower case, and no reason.
const h2 = http2.createServer((request, response) =>
  retired(request, response, () => {
    if (request.url === "/v1/b") return response.end("old");
    response.setHeader("Link", ["</a>; rel=next", "</b>; rel=prev"]);
    response.writeHead(200, { "Cache-Control": "max-age=9999" }).end("old");
  })
);
const session = http2.connect(`http://127.0.0.1:${await listen(h2)}`);
for (const path of ["/v1/a", "/v1/b"]) {
  const stream = session.request({ ":path": path });
  const fields = await new Promise((resolve) => stream.on("response", resolve).resume());
  assert.deepEqual([fields.deprecation, fields.sunset], [OURS.Deprecation, OURS.Sunset]);
  const links = OURS.Link.replace("/v2/a", path.replace("1", "2"));
  assert.equal(fields.link, path === "/v1/b" ? links : `</a>; rel=next, </b>; rel=prev, ${links}`);
  assert.match(fields["cache-control"], path === "/v1/b" ? /^max-age=0,/ : /^max-age=99,/);
}
session.close();
h2.close();

// Around a Fetch handler.
const fetched = withLifecycle(() => new Response("old"), policy, { successor, clock: () => now });
const response = await fetched(new Request("https://a.example/v1/a"));
const { state, faults } = inspect(response, { url: "https://a.example/v1/a", now });
assert.deepEqual([await response.text(), state, faults], ["old", "deprecated", []]);
console.log("passed");
