import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { stub } from "@std/testing/mock";
import { check } from "../../../lib/lifecycle/checking/check.ts";
import type { Field } from "../../../lib/http/outcome.ts";
import { definePolicy, type PolicySettings, withLifecycle } from "../../../lib/lifecycle/mod.ts";
import { publishFile } from "../../../lib/publishing/publish.ts";
import { openLocal } from "../../support/local_storage.ts";
import { Origin } from "../../support/origin.ts";
import { SAMPLE_MP3 } from "../../support/paths.ts";
import { needing } from "../../support/permissions.ts";
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/server.ts";

const test = needing("network");

/** Returns ISO 8601 text of an instant some days and a minute from now. */
const inDays = (days: number) =>
  new Date(Date.now() + days * 86_400_000 + 60_000).toISOString().slice(0, 19) + "Z";

/** Returns what is said of a URL. */
async function checked(url: string) {
  const { lines, exitStatus } = await check([url]);
  const [first, successor] = lines;
  return { first, successor, end: lines.at(-1), exitStatus };
}

/** Returns the data of the one URL that was checked, which has been reached. */
function resultOf({ data: [result] }: Awaited<ReturnType<typeof check>>) {
  assert(result !== undefined && !("error" in result));
  return result;
}

test("check finds no fault in what the library sends, in any phase", async () => {
  const [past, soon, later] = [inDays(-40), inDays(10), inDays(220)] as const;
  const brownouts = [`${inDays(-1)}/${soon}`];
  const dates = (sunset: string, retry = "") => `(deprecation ${past}, ${retry}sunset ${sunset})`;
  const out = `brownout ${dates(later, `retry-after ${soon}, `)}`;
  const rows: [settings: Partial<PolicySettings>, status: string, state: string][] = [
    [{ deprecatedAt: soon }, "200", `announced (deprecation ${soon}, sunset ${later})`],
    [{}, "200", `deprecated ${dates(later)}`],
    [{ brownouts, brownoutStatus: 503 }, "503", out],
    [{ brownouts, brownoutStatus: 410 }, "410", out],
    [{ sunsetAt: past, afterSunset: "gone" }, "410", `removed ${dates(past)}`],
    [{ sunsetAt: past, afterSunset: "redirect" }, "308", `removed ${dates(past)}`],
  ];
  for (const [settings, status, state] of rows) {
    const policy = definePolicy({ deprecatedAt: past, sunsetAt: later, ...settings });
    const handler = () => new Response("old", { headers: { "Cache-Control": "max-age=86400000" } });
    await using origin = new Origin(withLifecycle(handler, policy, { successor: () => "/v2" }));
    const [url, target] = ["/v1", "/v2"].map((path) => origin.url(path));
    assertEquals(await checked(url ?? ""), {
      first: `${status} ${url}${status === "308" ? ` to ${target}` : ""}: ${state}`,
      successor: `  successor-version: ${target}`,
      end: "  no faults",
      exitStatus: 0,
    });
  }
});

needing("processes")("check finds no fault in this server", async () => {
  await using subject = await openLocal();
  const { token } = await publishFile(subject.storage, SAMPLE_MP3);
  const [past, later] = [inDays(-40), inDays(220)];
  const settings = { DEPRECATED_AT: past, SUNSET_AT: later };
  await using server = await ServerProcess.start(settings, subject.folder);
  const url = `${server.origin}/audio/${token}`;
  assertEquals(await checked(url), {
    first: `200 ${url}: deprecated (deprecation ${past}, sunset ${later})`,
    successor: `  successor-version: ${server.origin}/media/${token}`,
    end: "  no faults",
    exitStatus: 0,
  });
  const malformed = await check([`${server.origin}/audio/x`]);
  const { status, faults, deprecatedAt } = resultOf(malformed);
  assertEquals([status, faults, malformed.exitStatus], [400, [], 0]);
  assertEquals(deprecatedAt, Date.parse(past));
});

test("check compares a HEAD with its GET, with the fields given, and lists every fault", async () => {
  let count = 0;
  await using origin = new Origin(({ method, url, headers }) => {
    assertEquals(headers.get("user-agent"), "media-head-check");
    if (headers.get("authorization") !== "Basic a:b") return new Response("", { status: 401 });
    const isHead = method === "HEAD";
    const at = new URL(url).pathname;
    const fields = new Headers({
      "Deprecation": "@1",
      "X-Runtime": `${++count}`,
      "Content-Security-Policy": `script-src 'nonce-${count}'`,
      "Link": `</a.js>; rel=preload; nonce=${count}`,
      "Expires": new Date((count + 1_800_000_000) * 1000).toUTCString(),
      "Retry-After": `${99 - count}`,
    });
    if (at === "/fields") {
      fields.set("ETag", `"${method}"`);
      fields.set("Cache-Control", `max-age=${isHead ? 0 : 300}`);
      if (!isHead) fields.set("Link", "<a>; rel=sunset");
    }
    if (at === "/terminal") fields.set("Sunset", "\x9b31m");
    if (at === "/lost" || at === "/lost-on-head" && isHead) fields.delete("Deprecation");
    const status = at === "/status" && isHead ? 405 : at.startsWith("/missing") ? 404 : 200;
    if (at === "/missing") { // as in Express, and in NestJS
      const page = `Cannot ${method} /missing`;
      fields.set("ETag", `W/"${page}"`);
      fields.set("Content-Length", `${page.length}`);
    }
    if (at === "/missing-length") fields.set("Content-Length", isHead ? "9" : "4");
    return new Response("text".padEnd(Number(fields.get("Content-Length"))), {
      status,
      headers: fields,
    });
  });
  const faultsAt = async (path: string) => {
    const fields: Field[] = [["Authorization", "Basic a:b"]];
    const result = await check([origin.url(path)], { fields });
    const { faults = [] } = resultOf(result);
    assertEquals(result.exitStatus, faults.length > 0 ? 1 : 0);
    const listed = result.lines.filter((line) => line.startsWith("  fault: "));
    assertEquals(listed.length, faults.length);
    return faults.map(({ message }) => message);
  };
  assertEquals(await faultsAt("/same"), []);
  assertEquals(await faultsAt("/status"), ["the status is 405 on HEAD, 200 on GET"]);
  assertEquals(await faultsAt("/fields"), [
    'cache-control is "max-age=0" on HEAD, "max-age=300" on GET',
    'etag is "\\"HEAD\\"" on HEAD, "\\"GET\\"" on GET',
    `the link "sunset" is none on HEAD, "${origin.url("/a")}" on GET`,
  ]);
  assertEquals(await faultsAt("/missing"), []);
  assertEquals(await faultsAt("/missing-length"), [
    'content-length is "9" on HEAD, "4" on GET',
  ]);
  assertEquals(await faultsAt("/terminal"), ['Sunset is "\x9b31m": expected an HTTP-date']);
  assertEquals(await faultsAt("/lost"), [
    "Nothing is announced: expected Deprecation, Sunset, or a link to an explanation",
  ]);
  assertEquals(await faultsAt("/lost-on-head"), ['deprecation is none on HEAD, "@1" on GET']);
});

test("a URL that cannot be reached is checked with 2, and others as usual", async () => {
  await using origin = new Origin(() => new Response("text", { headers: { Deprecation: "@1" } }));
  const closed = `http://127.0.0.1:${freePort()}/`;
  const { lines, data, exitStatus } = await check([closed, origin.url("/")]);
  assertEquals(exitStatus, 2);
  assertStringIncludes(lines[0] ?? "", `${closed}: `);
  const said = `200 ${origin.url("/")}: deprecated (deprecation 1970-01-01T00:00:01Z)`;
  assertEquals(lines.slice(1), [said, "  no faults"]);
  assertEquals(data.map((result) => "error" in result), [true, false]);
});

test("check with expectsNone asks what the CI of a client asks", async () => {
  const announced = { "Deprecation": "@1", "Link": '</v2>; rel="successor-version"' };
  type Row = [what: string, status: number, fields: object, exitStatus: number, finding: string];
  const rows: Row[] = [
    ["a client that has moved", 200, {}, 0, "as expected"],
    ["a malformed token", 400, {}, 0, "as expected"],
    ["a method that is not allowed", 405, {}, 0, "as expected"],
    ["faults that are the server's", 200, { "X-Method": "" }, 0, "as expected"],
    ["a link that announces nothing", 200, { Link: '</v3>; rel="successor-version"' }, 0, ""],
    ["a deprecation", 200, announced, 1, "not as expected: a retirement is announced"],
    ["a removal", 410, { Sunset: "Thu, 01 Jan 1970 00:00:01 GMT" }, 1, "not as expected: "],
    ["a deprecated path without such an item", 404, announced, 1, "not as expected: "],
    ["an announcement that is invalid", 200, { Deprecation: "true" }, 1, "not as expected: "],
    ["an announcement on HEAD only", 200, { ...announced, "X-Only": "HEAD" }, 1, "not as "],
    ["an announcement on GET only", 200, { ...announced, "X-Only": "GET" }, 1, "not as "],
    ...[401, 403, 404, 407, 410, 429, 500, 503].map((status): Row => {
      const unknown = `unknown: a ${status} does not tell whether the path is being retired`;
      return [`status ${status}`, status, {}, 2, unknown];
    }),
  ];
  for (const [what, status, fields, exitStatus, finding] of rows) {
    await using origin = new Origin(({ method }) => {
      const headers = new Headers(Object.entries(fields));
      if (headers.has("X-Method")) headers.set("ETag", `"${method}"`); // a HEAD that differs
      const only = headers.get("X-Only");
      if (only !== null && only !== method) headers.delete("Deprecation");
      return new Response(null, { status, headers });
    });
    const result = await check([origin.url("/v1")], { expectsNone: true });
    const { lines } = result;
    assertEquals(result.exitStatus, exitStatus, what);
    assertStringIncludes(lines.at(-1) ?? "", `  ${finding}`, what);
    assert(!/fault/.test(lines.join()), `${what}: ${lines}`);
    const isShown = lines.includes(`  successor-version: ${origin.url("/v2")}`);
    assertEquals(isShown, "Link" in fields && fields.Link === announced.Link, what);
    const { state, faults, expectation } = resultOf(result);
    assertEquals([state === "none", faults], [exitStatus !== 1, undefined], what);
    assertEquals(expectation, ["met", "not met", "unknown"][exitStatus], what);
  }
});

/** What a server has at its paths: a status, and where it redirects. */
const REDIRECTING: Readonly<Record<string, readonly [status: number, location?: string]>> = {
  "/v2/songs": [200],
  "/v2/songs/": [301, "/v2/songs"],
  "/v1/songs": [200], // announces its retirement
  "/login": [200],
  "/loop": [307, "/loop"],
  "/to-loop": [308, "/loop"],
  "/moved-twice": [301, "/moved"],
  "/moved": [308, "/v2/songs"],
  "/nowhere": [302],
  "/invalid": [301, "http://"],
  "/gone": [301, "/none"],
  "/a/b/up": [301, "../../v2/songs"],
  "/query": [302, "?page=1"],
  "/query?page=1": [200],
  "/same-network-path": [301, "//HOST/v2/songs"],
  "/port": [307, "http://127.0.0.1:9/v2/songs"],
  "/https": [301, "https://HOST/v2/songs"],
  "/elsewhere": [302, "https://me:secret@example.com/v2/songs"],
  "/mail": [301, "mailto:ops@example.com"],
  "/then-elsewhere": [301, "/elsewhere"],
  ...Object.fromEntries([301, 302, 303, 307, 308].flatMap((status) => [
    [`/v1/songs/?${status}`, [status, "/v1/songs"]],
    [`/v2/songs/?${status}`, [status, "/v2/songs"]],
    [`/${status}`, [status, "/v2/songs"]],
    [`/${status}/old`, [status, "/v1/songs"]],
    [`/${status}/login`, [status, "/login"]],
  ])),
};

test("check with expectsNone follows a redirect on the same origin, and names any other's target", async () => {
  await using origin = new Origin(({ url, headers }) => {
    const { host, pathname, search } = new URL(url);
    assertEquals(headers.get("Authorization"), "Bearer a", url);
    const [status, location] = REDIRECTING[pathname + search] ?? [404];
    const fields = new Headers(pathname === "/v1/songs" ? { Deprecation: "@1" } : {});
    if (location !== undefined) fields.set("Location", location.replace("HOST", host));
    return new Response(null, { status, headers: fields });
  });
  const { host } = new URL(origin.url("/"));
  const fields: Field[] = [["Authorization", "Bearer a"]];
  const ask = (path: string) => check([origin.url(path)], { fields, expectsNone: true });
  const untold = (status: number) =>
    `unknown: a ${status} does not tell whether the path is being retired`;
  const elsewhere = (target: string) => `unknown: it redirects to another origin; check ${target}`;
  const temporary = (status: number, path: string) =>
    `unknown: a ${status} led to another path, as to a login page; check ${origin.url(path)}`;
  const announced = "not as expected: a retirement is announced";
  const rows: [path: string, exitStatus: number, finding: string][] = [
    ["/v2/songs", 0, "as expected"],
    ["/v2/songs/", 0, "as expected"],
    ["/moved-twice", 0, "as expected"],
    ["/a/b/up", 0, "as expected"],
    ["/query", 0, "as expected"],
    ["/same-network-path", 0, "as expected"],
    ["/gone", 2, untold(404)],
    ["/nowhere", 2, untold(302)],
    ["/invalid", 2, untold(301)],
    ["/port", 2, elsewhere("http://127.0.0.1:9/v2/songs")],
    ["/https", 2, elsewhere(`https://${host}/v2/songs`)],
    ["/elsewhere", 2, elsewhere("https://example.com/v2/songs")],
    ["/mail", 2, elsewhere("mailto:ops@example.com")],
    ["/then-elsewhere", 2, elsewhere("https://example.com/v2/songs")],
    ...[301, 302, 303, 307, 308].flatMap((status): typeof rows => {
      const isPermanent = status === 301 || status === 308;
      const other = (path: string): [number, string] =>
        isPermanent ? [0, "as expected"] : [2, temporary(status, path)];
      return [
        [`/v1/songs/?${status}`, 1, announced],
        [`/v2/songs/?${status}`, 0, "as expected"],
        [`/${status}`, ...other("/v2/songs")],
        [`/${status}/old`, 1, announced],
        [`/${status}/login`, ...other("/login")],
      ];
    }),
  ];
  for (const [path, exitStatus, finding] of rows) {
    const result = await ask(path);
    assertEquals([result.exitStatus, result.lines.at(-1)], [exitStatus, `  ${finding}`], path);
    assertEquals(resultOf(result).url, origin.url(path));
  }
  const [slash] = (await ask("/v1/songs/?301")).lines;
  const [asked, found] = ["/v1/songs/?301", "/v1/songs"].map((path) => origin.url(path));
  const deprecated = "deprecated (deprecation 1970-01-01T00:00:01Z)";
  assertEquals(slash, `200 ${asked} to ${found}: ${deprecated}`);
  for (const path of ["/loop", "/to-loop"]) {
    const { exitStatus, lines, data } = await ask(path);
    const [url, error] = [origin.url(path), "more than 20 redirects"];
    assertEquals([exitStatus, lines], [2, [`${url}: ${error}`]]);
    assertEquals(data, [{ url, error, expectation: "unknown" }]);
  }
});

test("check with expectsNone is 1 if one URL announces, whatever the others are", async () => {
  await using origin = new Origin(({ url }) =>
    new URL(url).pathname === "/v1"
      ? new Response(null, { headers: { Deprecation: "@1" } })
      : new Response(null, { status: new URL(url).pathname === "/v2" ? 200 : 404 })
  );
  const closed = `http://127.0.0.1:${freePort()}/`;
  const [old, next, missing] = [origin.url("/v1"), origin.url("/v2"), origin.url("/v3")];
  const rows: [urls: string[], exitStatus: number][] = [
    [[old, next, missing, closed], 1],
    [[closed, old], 1],
    [[next, missing], 2],
    [[next, closed], 2],
    [[next], 0],
  ];
  for (const [urls, exitStatus] of rows) {
    assertEquals((await check(urls, { expectsNone: true })).exitStatus, exitStatus, `${urls}`);
  }
  assertEquals((await check([old, closed])).exitStatus, 2); // without it, 2 is the highest
});

test("check sends the user and password of a URL, and prints neither", async () => {
  const sent: (string | null)[] = [];
  await using origin = new Origin(({ headers }) => {
    sent.push(headers.get("Authorization"));
    return new Response(null, { headers: { Deprecation: "@1", Link: "</v2>; rel=deprecation" } });
  });
  const url = origin.url("/v1");
  for (const user of ["tim:s%C3%A9cret", "tim:s\u00e9cret"]) {
    for (const expectsNone of [false, true]) {
      sent.length = 0;
      const given = url.replace("//", `//${user}@`);
      const { lines, data } = await check([given], { expectsNone });
      assertEquals(sent, Array(2).fill("Basic dGltOnPDqWNyZXQ="));
      assert(!/tim|cret/.test(`${lines}${JSON.stringify(data)}`), `${lines}`);
      assertStringIncludes(lines[0] ?? "", `200 ${url}: deprecated`);
    }
  }
  sent.length = 0;
  await check([url.replace("//", "//100%@")], { fields: [["Authorization", "Bearer a"]] });
  assertEquals(sent, ["Bearer a", "Bearer a"]);
  const closed = `http://me:secret@127.0.0.1:${freePort()}/`;
  assert(!/secret/.test((await check([closed])).lines.join()));
});

test("check sends to several URLs side by side", async () => {
  const waiting: (() => void)[] = [];
  await using origin = new Origin(async ({ method }) => {
    // Neither HEAD is answered before both were sent.
    if (method === "HEAD") {
      await new Promise<void>((resolve) => {
        if (waiting.push(resolve) === 2) waiting.forEach((resolve) => resolve());
      });
    }
    return new Response(null, { headers: { Deprecation: "@1" } });
  });
  const urls = ["/b", "/a"].map((path) => origin.url(path));
  const { lines, exitStatus } = await check(urls);
  assertEquals(lines.join("\n").match(/http\S+(?=:)/g), urls);
  assertEquals(exitStatus, 0);
});

test("check names the method and the limit of a time-out", async () => {
  const timeout = AbortSignal.timeout;
  using _ = stub(AbortSignal, "timeout", () => timeout(50));
  for (const silent of ["HEAD", "GET"]) {
    const { promise, resolve } = Promise.withResolvers<Response>();
    await using origin = new Origin(({ method }) => method === silent ? promise : new Response());
    const { lines, exitStatus } = await check([origin.url("/")]);
    const expected = `${origin.url("/")}: no response to the ${silent} within 10 s`;
    assertEquals([lines, exitStatus], [[expected], 2]);
    resolve(new Response());
  }
});
