import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { stub } from "@std/testing/mock";
import {
  definePolicy,
  type LifecycleCall,
  type LifecycleOptions,
  momentAt,
  type Policy,
  withLifecycle,
} from "../../../lib/lifecycle/mod.ts";
import { checkParity, seen, valueOf } from "../../server/request_table.ts";
import {
  ANNOUNCED,
  BROWNOUT,
  DEPRECATED,
  POLICY as UNEXPLAINED,
  REMOVED,
} from "../../support/application_calls.ts";
import { needing } from "../../support/permissions.ts";
import { field, requestRaw } from "../../support/raw_http.ts";
import { UNREADABLE } from "../../support/unreadable.ts";

const POLICY = { ...UNEXPLAINED, documentation: "https://example.com/why" };

const WHY = '<https://example.com/why>; rel="deprecation", <https://example.com/why>; rel="sunset"';

const fail = (): never => {
  throw new Error("bug");
};

/** The response to a request at an instant. */
async function answerAt(
  instant: number,
  handler: (request: Request) => Response | Promise<Response>,
  { method = "GET", policy = POLICY, ...options }:
    & { method?: string; policy?: Policy }
    & LifecycleOptions = {},
) {
  const retired = withLifecycle(handler, policy, { ...options, clock: () => instant });
  return await seen(await retired(new Request("http://test/v1/things?x=1", { method })));
}

Deno.test("withLifecycle() announces on every response of the handler", async () => {
  const answers = [
    () => new Response("text", { headers: { Link: '</next>; rel="next"' } }),
    () => Response.json({}, { status: 201 }),
    () => new Response(null, { status: 204 }),
    () => new Response(null, { status: 304 }),
    () => Response.redirect("http://test/elsewhere"), // its headers are immutable
    () => new Response("no", { status: 404 }),
    () => Promise.resolve(new Response("down", { status: 503 })),
  ];
  for (const instant of [ANNOUNCED, DEPRECATED]) {
    for (const handler of answers) {
      const plain = await handler();
      const answer = await answerAt(instant, handler, { successor: () => "/v2/things" });
      assertEquals(answer.status, plain.status);
      assertEquals(answer.content, await plain.bytes());
      assertEquals(valueOf(answer, "deprecation"), "@1798761600");
      assertEquals(valueOf(answer, "sunset"), "Wed, 30 Jun 2027 00:00:00 GMT");
      const links = [plain.headers.get("link") ?? [], '</v2/things>; rel="successor-version"', WHY];
      assertEquals(valueOf(answer, "link"), links.flat().join(", "));
    }
  }
});

Deno.test("withLifecycle() answers in place of the handler, HEAD like GET", async () => {
  const redirect = { ...POLICY, afterSunset: "redirect" } as const;
  const successor = () => "/v2/things";
  type Options = LifecycleOptions & { policy?: Policy };
  const rows: [instant: number, options: Options, status: number, location?: string][] = [
    [BROWNOUT, {}, 503],
    [BROWNOUT, {
      policy: { ...POLICY, brownouts: POLICY.brownouts.map((one) => ({ ...one, status: 410 })) },
    }, 410],
    [BROWNOUT, { policy: redirect, successor }, 503],
    [REMOVED, { successor }, 410],
    [REMOVED, { policy: redirect, successor }, 308, "/v2/things"],
    [REMOVED, { policy: redirect }, 410], // no successor to redirect to
  ];
  for (const [instant, options, status, location] of rows) {
    const get = await answerAt(instant, fail, options);
    const head = await answerAt(instant, fail, { ...options, method: "HEAD" });
    checkParity(`${status}`, head, get);
    assertEquals([get.status, valueOf(get, "location")], [status, location]);
    assertEquals(valueOf(get, "deprecation"), "@1798761600");
    const isBrownout = instant === BROWNOUT;
    const text = status === 308 ? "" : ", no-transform";
    assertEquals(valueOf(get, "cache-control"), `no-store${text}`);
    const kept = valueOf(await answerAt(instant, fail, { ...options, maxAge: 7 }), "cache-control");
    assertEquals(kept, (isBrownout ? "no-store" : "max-age=7") + text);
    const end = isBrownout ? "Mon, 01 Mar 2027 10:00:00 GMT" : undefined;
    assertEquals(valueOf(get, "retry-after"), end);
    for (const method of ["POST", "DELETE"]) {
      assertEquals((await answerAt(instant, fail, { ...options, method })).status, status);
    }
    if (location !== undefined) continue;
    assertEquals(JSON.parse(new TextDecoder().decode(get.content)), {
      title: status === 503 ? "Service Unavailable" : "Gone",
      status,
      detail: isBrownout
        ? "This path is disabled by a brownout until 2027-03-01T10:00:00Z, ahead of its removal"
        : "This path was removed at 2027-06-30T00:00:00Z",
      ...options.successor && { successor: "/v2/things" },
      documentation: "https://example.com/why",
    });
  }
});

Deno.test("withLifecycle() handles requests that the retirement does not apply to", async () => {
  const handler = ({ method }: Request) => new Response(method);
  for (const instant of [BROWNOUT, REMOVED]) {
    const options = await answerAt(instant, handler, { method: "OPTIONS" });
    assertEquals([options.status, valueOf(options, "deprecation")], [200, "@1798761600"]);
    const applies = ({ method }: Request) => method === "HEAD";
    assertEquals((await answerAt(instant, handler, { applies })).status, 200);
    const head = await answerAt(instant, handler, { applies, method: "HEAD" });
    assertEquals(head.status, instant === BROWNOUT ? 503 : 410);
  }
});

Deno.test("withLifecycle() sends each field of a refusal once, as refusalFields gives it", async () => {
  const refusalFields = (): [string, string][] =>
    [
      ...[["content-type", "text/html"], ["CACHE-CONTROL", "no-cache"], ["X-A", "1"]],
      ...[["X-A", "2"], ["retry-after", "60"]],
    ] as [string, string][];
  const answer = await answerAt(BROWNOUT, fail, { refusalFields });
  const said = ["content-type", "cache-control", "x-a", "retry-after"].map((name) =>
    valueOf(answer, name)
  );
  assertEquals(said, ["text/html", "no-cache", "1, 2", "60"]);
});

Deno.test("withLifecycle() keeps caches from reusing a response beyond its phase", async () => {
  const headers = { "Cache-Control": "max-age=86400", "X-Accel-Expires": "86400" };
  const handler = () => new Response("", { headers });
  const tail = "must-revalidate, stale-while-revalidate=0";
  // The phase ends while the handler runs: its response belongs to the old phase, so it is stale.
  let instant = Date.parse("2027-03-01T08:59:59Z");
  const takeLong = () => {
    instant += 5000;
    return handler();
  };
  const slow = withLifecycle(takeLong, POLICY, { clock: () => instant });
  const late = await seen(await slow(new Request("http://test/")));
  assertEquals([late.status, valueOf(late, "cache-control")], [200, `max-age=0, ${tail}`]);
  assertEquals(valueOf(late, "x-accel-expires"), "0");
});

Deno.test("withLifecycle() passes on all arguments, and rejects when the handler does", async () => {
  const handler = (_: Request, name: string, count: number) => new Response(name.repeat(count));
  const retired = withLifecycle(handler, POLICY, { clock: () => DEPRECATED });
  assertEquals(await (await retired(new Request("http://test/"), "ab", 2)).text(), "abab");
  const failing = withLifecycle(() => Promise.reject(new TypeError("bug")), POLICY);
  await assertRejects(() => failing(new Request("http://test/")), TypeError, "bug");
});

Deno.test("withLifecycle() sets the fields on the handler's own response, but on a copy of a kept one", async () => {
  const request = (path = "") => new Request(`http://test/v1${path}`);
  const successor = ({ url }: Request) => new URL(url).pathname.replace("v1", "v2");
  const kept = new Response(null, { status: 204, headers: { "Cache-Control": "max-age=9" } });
  const retired = withLifecycle(() => kept, POLICY, { successor, clock: () => DEPRECATED });
  assertEquals(await retired(request("/0")) === kept, true);
  const links = (path: string) => `</v2${path}>; rel="successor-version", ${WHY}`;
  for (const path of ["/1", "/2"]) {
    const { headers } = await retired(request(path));
    assertEquals(headers.get("link"), links(path));
  }
  assertEquals(kept.headers.get("link"), links("/0"));

  // Around another, each announces once, its own links first, and the shorter freshness stays.
  const soon = definePolicy({ deprecatedAt: new Date(DEPRECATED + 5000) });
  const inner = withLifecycle(() => kept, soon, { successor, clock: () => DEPRECATED });
  const outer = withLifecycle(inner, POLICY, { successor, clock: () => DEPRECATED });
  for (const path of ["/3", "/4"]) {
    const { headers } = await outer(request(path));
    assertEquals(headers.get("link"), links(path));
    assertEquals(headers.get("cache-control")?.split(",")[0], "max-age=4");
  }
  const failed = withLifecycle(() => Response.error(), POLICY);
  assertEquals((await failed(request())).type, "error");
});

Deno.test("withLifecycle() keeps every cookie of the handler", async () => {
  for (const cookies of [["a=1"], ["a=1", "b=2"], ["a=1", "b=2", "a=1"]]) {
    const headers = cookies.map((cookie): [string, string] => ["Set-Cookie", cookie]);
    const retired = withLifecycle(() => new Response("old", { headers }), POLICY);
    const response = await retired(new Request("http://test/v1/things"));
    assertEquals(response.headers.getSetCookie(), cookies);
  }
});

needing("network")("withLifecycle() leaves the length of the content as it is", async () => {
  const answer = () => new Response("old");
  const retired = withLifecycle(answer, POLICY, { clock: () => DEPRECATED });
  for (const handler of [answer, retired]) {
    const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, handler);
    for (const method of ["HEAD", "GET"]) {
      const response = await requestRaw(server.addr.port, method, "/", {});
      const lengths = ["content-length", "transfer-encoding"].map((name) => field(response, name));
      assertEquals(lengths, ["3", undefined], method);
    }
    await server.shutdown();
  }
});

Deno.test("withLifecycle() reports each response to be counted, with what the handler got", async () => {
  const calls: [LifecycleCall, Request, ...unknown[]][] = [];
  const options = {
    route: () => "/v1/:id",
    onCount: (...args: [LifecycleCall, Request, ...unknown[]]) => calls.push(args),
  };
  const headers = { "User-Agent": "curl/8" };
  const rows: [instant: number, own: number, method: string, status: number, breaks: boolean][] = [
    [ANNOUNCED, 200, "GET", 200, true],
    [DEPRECATED, 404, "HEAD", 404, false],
    [BROWNOUT, 404, "POST", 503, true],
    [REMOVED, 204, "OPTIONS", 204, false],
  ];
  for (const [instant, own, method, status, breaks] of rows) {
    const handler = (_: Request, _context: unknown) => new Response(null, { status: own });
    const retired = withLifecycle(handler, POLICY, { ...options, clock: () => instant });
    const request = new Request("http://test/v1/7", { method, headers });
    await retired(request, "context");
    const call = { route: "/v1/:id", ...momentAt(POLICY, instant), status, client: "curl", breaks };
    assertEquals(calls.pop(), [call, request, "context"]);
  }

  // A client has closed the connection when the handler fails.
  const failing = withLifecycle(fail, POLICY, { ...options, clock: () => DEPRECATED });
  const aborted = new Request("http://test/v1", { signal: AbortSignal.abort() });
  await assertRejects(() => failing(aborted), Error, "bug");
  assertEquals(calls.splice(0).map(([{ status, breaks }]) => [status, breaks]), [[0, true]]);

  const request = new Request("http://test/v1", { headers });
  const upgrade = () => { // as Deno.upgradeWebSocket() leaves a request
    Object.defineProperty(request, "headers", { get: fail });
    return new Response("switched");
  };
  await withLifecycle(upgrade, POLICY, { ...options, clock: () => DEPRECATED })(request);
  assertEquals(calls.at(-1)?.[0].client, "curl");
});

Deno.test("withLifecycle() announces the earlier of nested sunsets, in every phase", async () => {
  const settings = { deprecatedAt: "2027-01-01", documentation: "https://example.com/api" };
  const api = definePolicy({
    ...settings,
    sunsetAt: "2027-12-31",
    brownouts: ["2027-02-01/P1D"],
    brownoutStatus: 503,
  });
  const songs = definePolicy({
    deprecatedAt: "2026-11-21",
    sunsetAt: "2027-06-30",
    brownouts: ["2027-05-03T09:00Z/PT1H"],
    brownoutStatus: 503,
    documentation: "https://example.com/songs",
  });
  const open = definePolicy({ ...settings, deprecatedAt: "2026-06-01" }); // no sunset yet
  const later = definePolicy({ ...settings, deprecatedAt: "2027-06-01" });
  const linksTo = (name: string, relations = ["deprecation", "sunset"]) =>
    relations.map((rel) => `<https://example.com/${name}>; rel="${rel}"`);
  const [ofSongs, ofApi, ofOpen] = [
    linksTo("songs"),
    linksTo("api"),
    linksTo("api", ["deprecation"]),
  ];
  const NEXT = '</next>; rel="next"';
  const SONGS = ["@1795219200", "Wed, 30 Jun 2027 00:00:00 GMT"];
  const API = ["@1798761600", "Fri, 31 Dec 2027 00:00:00 GMT"];
  const OPEN = ["@1780272000", null];

  type Row = [
    at: string,
    inner: Policy | object,
    outer: Policy,
    status: number,
    dates: unknown[],
    links: string[],
  ];
  const rows: Row[] = [
    // The inner sunset is earlier: it stays, whatever the outer policy says.
    ["2026-11-01", songs, api, 200, SONGS, [NEXT, ...ofSongs, ...ofApi]],
    ["2026-12-01", songs, api, 200, SONGS, [NEXT, ...ofSongs, ...ofApi]],
    ["2027-02-01T12:00Z", songs, api, 503, API, ofApi], // the outer one refuses
    ["2027-03-01", songs, api, 200, SONGS, [NEXT, ...ofSongs, ...ofApi]],
    ["2027-05-03T09:30Z", songs, api, 503, SONGS, [...ofSongs, ...ofApi]],
    ["2027-07-01", songs, api, 410, SONGS, [...ofSongs, ...ofApi]],
    ["2028-01-01", songs, api, 410, API, ofApi], // both have passed
    // The outer sunset is earlier.
    ["2026-12-01", api, songs, 200, SONGS, [...ofSongs, NEXT, ...ofApi]],
    ["2027-02-01T12:00Z", api, songs, 503, SONGS, [...ofSongs, ...ofApi]],
    ["2027-05-03T09:30Z", api, songs, 503, SONGS, ofSongs],
    ["2027-07-01", api, songs, 410, SONGS, ofSongs],
    // One has no sunset: the other one's stays.
    ["2026-12-01", open, songs, 200, SONGS, [...ofSongs, NEXT, ...ofOpen]],
    ["2026-12-01", songs, open, 200, SONGS, [NEXT, ...ofSongs, ...ofOpen]],
    // None has: the earlier deprecation stays.
    ["2026-12-01", open, later, 200, OPEN, [NEXT, ...ofOpen]],
    ["2026-12-01", later, open, 200, OPEN, [...ofOpen, NEXT]],
    // Fields that the handler has set itself.
    ["2026-12-01", { Sunset: SONGS[1] }, api, 200, [API[0], SONGS[1]], [NEXT, ...ofApi]],
    ["2026-12-01", { Deprecation: "true", Sunset: "soon" }, api, 200, API, [...ofApi, NEXT]],
    [
      "2026-12-01",
      { Deprecation: "true", Sunset: SONGS[1] },
      api,
      200,
      [API[0], SONGS[1]],
      [NEXT, ...ofApi],
    ],
    // What comes after a quoted string that is not closed is part of it.
    ["2026-12-01", { Link: '</a>; title="b' }, api, 200, API, [...ofApi, '</a>; title="b']],
  ];
  for (const [at, inner, outer, status, dates, links] of rows) {
    const clock = () => Date.parse(at);
    const isPolicy = "deprecatedAt" in inner;
    const headers = { Link: NEXT, ...isPolicy ? {} : inner as Record<string, string> };
    const handler = () => new Response("old", { headers });
    const nested = isPolicy ? withLifecycle(handler, inner, { clock }) : handler;
    const retired = withLifecycle(nested, outer, { clock });
    const response = await retired(new Request("http://test/v1/songs"));
    const said = ["deprecation", "sunset"].map((name) => response.headers.get(name));
    const note = `${at} ${JSON.stringify([inner, outer])}`;
    assertEquals([response.status, said], [status, dates], note);
    assertEquals(response.headers.get("link")?.split(", "), links, note);
    await response.body?.cancel();
  }
});

/** The options that are functions. */
const OPTIONS = [
  ...["successor", "applies", "refusalFields", "refusalBody", "route", "onCount", "clock"],
];

/** How an option fails, and whether it returns a mere value, which `applies` and `route` take as it is. */
const FAILURES: [what: string, option: () => unknown, isValue?: true][] = [
  ["throws", fail],
  ["returns a promise", () => Promise.resolve(true)],
  ["rejects", () => Promise.reject(new Error("bug"))],
  ...Object.entries(UNREADABLE).flatMap(([what, value]): typeof FAILURES => [
    [`returns ${what}`, () => value, true],
    [`throws ${what}`, () => {
      throw value;
    }],
  ]),
];

Deno.test("withLifecycle() survives options that fail in any way, and names them", async () => {
  for (const name of OPTIONS) {
    for (const [what, option, isValue = false] of FAILURES) {
      using error = stub(console, "error");
      using warn = stub(console, "warn");
      let isGiven = false; // a clock is tried when it is given
      const clock = () => isGiven && name === "clock" ? option() as number : REMOVED;
      const options = { onCount: () => {}, [name]: option, clock };
      const retired = withLifecycle(() => new Response("old"), POLICY, options);
      isGiven = true;
      const response = await retired(new Request("http://test/"));
      // The system clock is before the sunset.
      const isServed = name === "applies" && !isValue || name === "clock";
      assertEquals(response.status, isServed ? 200 : 410, `${name} ${what}`);
      await response.body?.cancel();
      await new Promise((resolve) => setTimeout(resolve)); // a rejection unhandled fails the test
      const said = new Set([...error.calls, ...warn.calls].map(({ args }) => args[0]));
      const isValid = isValue && (name === "applies" || name === "route") ||
        name === "onCount" && what.startsWith("returns"); // which may return anything
      const text = name === "successor" ? "Ignored a successor:" : `The option ${name} failed:`;
      assertEquals([...said], isValid ? [] : [text], `${name} ${what}`);
    }
  }
});

Deno.test("withLifecycle() refuses options and policies that are not valid", () => {
  const policy = "policy: expected the result of definePolicy(), got";
  const rows: [options: object, expected: string, policy?: object | undefined][] = [
    [{}, `${policy} [object Object]`, { deprecatedAt: "2027-01-01" }],
    [{}, `${policy} undefined`, undefined],
    [{ sucessor: () => "/v2" }, "options: expected only successor, applies, refusalFields,"],
  ];
  for (const name of OPTIONS) {
    rows.push([{ [name]: true }, `${name}: expected a function, got true`]);
  }
  const instant = "clock: expected a function that returns milliseconds, got";
  rows.push([{ clock: () => NaN }, `${instant} NaN`], [{ clock: () => "now" }, `${instant} "now"`]);
  rows.push([{ clock: () => Promise.resolve(1) }, `${instant} [object Promise]`]);
  const age = "maxAge: expected a whole number of seconds, at most 2147483648, got";
  for (const maxAge of [-1, 0.5, NaN, Infinity, 2 ** 31 + 1, null]) {
    rows.push([{ maxAge }, `${age} ${maxAge}`]);
  }
  rows.push([{ maxAge: "300" }, `${age} "300"`]);
  for (const origin of ["", "new.test", "https://new.test/", "https://new.test/v2", "ftp://a"]) {
    const expected = 'an origin like "https://example.com", without a path';
    rows.push([{ successorOrigin: origin }, `expected ${expected}, got "${origin}"`]);
  }
  for (const [options, expected, ...given] of rows) {
    const policy = given.length === 0 ? POLICY : given[0];
    const wrap = () => withLifecycle(() => new Response(), policy as Policy, options);
    assertThrows(wrap, TypeError, expected);
  }
  for (const maxAge of [0, 2 ** 31, undefined]) {
    withLifecycle(() => new Response(), POLICY, { maxAge });
  }
});
