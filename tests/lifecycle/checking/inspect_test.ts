import { assert, assertEquals, assertThrows } from "@std/assert";
import { inspect, type State } from "../../../lib/lifecycle/checking/inspect.ts";
import { limitFreshness } from "../../../lib/lifecycle/freshness.ts";
import { needing } from "../../support/permissions.ts";
import { within } from "../../support/within.ts";

const NOW = Date.parse("2027-02-01T00:00:00Z");
const URL = "https://example.com/v1/songs?page=2";
const DEPRECATED_AT = Date.parse("2027-01-01T00:00:00Z");
const SUNSET_AT = Date.parse("2027-06-30T00:00:00Z");

const [EARLIER, PAST] = ["Thu, 31 Dec 2026 00:00:00 GMT", "Sun, 31 Jan 2027 00:00:00 GMT"];
/** Fields without a fault. */
const SOUND = {
  deprecation: "@1798761600",
  sunset: "Wed, 30 Jun 2027 00:00:00 GMT",
  link:
    '</v2/songs>; rel="successor-version", <https://docs.example/a,b>; rel="deprecation sunset"',
  "cache-control": "max-age=300",
};

function inspected(fields: Record<string, string>, status = 200) {
  return inspect({ status, headers: new Headers(fields), url: URL }, { now: NOW });
}

/** Faults, their sections, and fields each of which, added to the sound ones, has only that fault. */
const FAULTS: [name: string, section: string, fields: Record<string, string>[], status?: number][] =
  [
    [
      "invalid-deprecation",
      "RFC 9745 §2.1",
      [
        ...["true", "?1", "@1798761600.5", "@soon", "1798761600", "@1798761600000", "@1, @2"],
        ...["2027-01-01", "Fri, 01 Jan 2027 00:00:00 GMT", ""],
      ].map((deprecation) => ({ deprecation })),
    ],
    [
      "invalid-sunset",
      "RFC 8594 §3",
      [
        ...["soon", "", "2027-06-30", "2027-06-30T00:00:00Z", "@1814313600"],
        ...["Wed, 30 Jun 2027 02:00:00 +0200", "Wed, 30 Jun 2027 00:00:00 UTC"],
        "Tue, 30 Jun 2027 00:00:00 GMT", // another weekday
        "Wednesday, 30-Jun-27 00:00:00 GMT", // obsolete
        // Two lines
        "Wed, 30 Jun 2027 00:00:00 GMT, Thu, 01 Jul 2027 00:00:00 GMT",
        "Thu, 01 Jul 2027 00:00:00 GMT,Wed, 30 Jun 2027 00:00:00 GMT",
        "Wed, 30 Jun 2027 00:00:00 GMT, 2027-06-30T00:00:00Z",
      ].map((sunset) => ({ sunset })),
    ],
    ["sunset-before-deprecation", "RFC 9745 §4", [{ sunset: EARLIER }], 410],
    ["served-after-sunset", "RFC 8594 §3", [{ sunset: PAST }]],
    ["served-after-sunset", "RFC 8594 §3", [{ sunset: PAST }], 304],
    ["no-link-target", "RFC 8288 §3.1", [
      { link: '<>; rel="successor-version"' },
      { link: 'rel="successor-version"' },
      { link: '<https://[>; rel="successor-version"' },
      { link: `${SOUND.link}, ; rel=deprecation` },
    ]],
    ["fresh-beyond-phase", "RFC 9111 §4.2", [
      { "cache-control": "max-age=86400000" },
      { "cache-control": "max-age=86400000, x-no-store" },
      { "cache-control": 'max-age=86400000, ext="no-store"' },
      { "cache-control": "max-age=86400000, must-understand, no-store" },
      { "cache-control": "max-age=86400000", age: "86400" },
      { "edge-control": "cache-maxage=1000d" },
      { "any-cache-control": "max-age=86400000" },
      { "cache-control": "max-age=1, s-maxage=86400000" },
      { "cache-control": 'max-age=86400000, no-cache="Set-Cookie"' },
      { "cache-control": "max-age=1, stale-while-revalidate=86400000" },
      { "cache-control": "max-age=1, stale-if-error=86400000" },
      { "cloudflare-cdn-cache-control": "max-age=86400000" },
      { "surrogate-control": "max-age=86400000" },
      { "cache-control": "public", "last-modified": "Wed, 01 Jan 2020 00:00:00 GMT" },
      { "cache-control": "public", expires: "Thu, 01 Jul 2027 00:00:00 GMT" },
    ]],
    [
      "unreadable-by-pages",
      "Fetch §3.3.3",
      [
        {},
        { "access-control-expose-headers": "Deprecation, Sunset" },
        { "access-control-allow-credentials": "true", "access-control-expose-headers": "*" },
      ].map((fields) => ({ "access-control-allow-origin": "https://a.example", ...fields })),
    ],
  ];

Deno.test("inspect() takes whatever has a status and headers", () => {
  const said = (headers: object) => {
    const { deprecatedAt, sunsetAt, links } = inspect({ status: 200, headers }, { now: NOW });
    return [deprecatedAt, sunsetAt, links.get("deprecation")];
  };
  const expected = [DEPRECATED_AT, SUNSET_AT, ["https://docs.example/a,b"]];
  const values = new Map<string, unknown>(Object.entries(SOUND));
  assertEquals(said(values), expected);
  assertEquals(said({ ...SOUND, etag: undefined }), expected);
  const capitalized = Object.entries(SOUND).map(([name, value]) => [name.toUpperCase(), value]);
  assertEquals(said(Object.fromEntries(capitalized)), expected);
  const [first, ...rest] = SOUND.link.split(", ");
  assertEquals(said(new Map([...values, ["link", [first, ...rest]]])), expected);
});

Deno.test("inspect() says what to pass in place of what it cannot read", () => {
  const message = { statusCode: 200, headers: { deprecation: "@1" } }; // an IncomingMessage
  const given: unknown[] = [message, { status: 200 }, { status: () => 200, headers: new Map() }];
  const pass = "{ status: message.statusCode, headers: message.headers }";
  for (const response of given) {
    assertThrows(() => inspect(response as Response), TypeError, pass);
  }
});

needing("files")(
  "inspect() reads fields of any length in a moment, whatever is in them",
  async () => {
    // What took a time quadratic to the length: 128 kB took minutes. The test is of that, not of speed.
    const source = new globalThis.URL("inspect_worker.ts", import.meta.url);
    const worker = new Worker(source, { type: "module" });
    const ended = new Promise<number>((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
    });
    try {
      assert(await within("the end of inspect()", ended, { timeout: 300_000 }) > 100);
    } finally {
      worker.terminate();
    }
  },
);

Deno.test("inspect() names each fault, with its section", () => {
  assertEquals(inspected(SOUND).faults, []);
  for (const [name, section, rows, status] of FAULTS) {
    for (const fields of rows) {
      const { faults } = inspected({ ...SOUND, ...fields }, status);
      const found = faults.map((fault) => [fault.name, fault.section]);
      assertEquals(found, [[name, section]], JSON.stringify(fields));
    }
  }
});

Deno.test("inspect() finds no fault where there is none", () => {
  const rows: [fields: Record<string, string>, status: number][] = [
    [{}, 200],
    [{ "cache-control": "max-age=86400000", link: "<" }, 200], // announces nothing
    [{ sunset: SOUND.sunset }, 200], // a resource that was meant to be temporary
    [{ deprecation: "@1798761600" }, 200], // without a successor
    [{ ...SOUND, "cache-control": "public", "last-modified": PAST }, 200],
    [{ ...SOUND, "cache-control": "", "last-modified": "Wed, 01 Jan 2020 00:00:00 GMT" }, 403],
    [{ ...SOUND, expires: "0", "last-modified": "Wed, 01 Jan 2020 00:00:00 GMT" }, 200],
    [{ deprecation: "@1798761600", sunset: PAST }, 410],
    [{ ...SOUND, deprecation: '@1798761600; a="b;c"; d' }, 200],
    [{ ...SOUND, "cache-control": "no-store, max-age=86400000" }, 200],
    [{ ...SOUND, "cache-control": "max-age=1, must-revalidate, stale-if-error=86400000" }, 200],
    [{ ...SOUND, expires: "Thu, 01 Jul 2027 00:00:00 GMT" }, 200], // max-age wins
    ...["no-store", "no-cache"].map((value): [Record<string, string>, number] => [
      { ...SOUND, "cache-control": value, expires: "Thu, 01 Jul 2027 00:00:00 GMT" },
      200,
    ]),
    [{ ...SOUND, "cache-control": "max-age=86400000", age: "86400000" }, 200], // long stale
    [{ ...SOUND, "access-control-allow-origin": "*", "access-control-expose-headers": "*" }, 200],
  ];
  for (const [fields, status] of rows) {
    assertEquals(inspected(fields, status).faults, [], JSON.stringify(fields));
  }
});

Deno.test("inspect() finds no fault in what the library sent, behind a CDN or a clock behind", () => {
  const LEFT = [2, 60, 3_600];
  const stated: Record<string, string>[] = [
    { "Cache-Control": "max-age=300" },
    { "Cache-Control": "s-maxage=900, max-age=0" },
    { "Cache-Control": "max-age=20, stale-while-revalidate=30" },
    { Expires: new Date(NOW + 600_000).toUTCString() },
    { "Last-Modified": PAST },
  ];
  const sunset = (left: number) => new Date(NOW + left * 1000);
  const limited = (fields: Record<string, string>, left: number) =>
    limitFreshness(Object.entries(fields), {
      ...{ until: sunset(left).getTime(), now: NOW, method: "GET" },
      ...{ status: 200, isAuthorized: false },
    });
  const edges = [ // how many seconds after the server, and what Date says then
    ...[0, 1, 30, 50].flatMap((age) => [{ age, date: 0 }, { age, date: age }]),
    ...[-1, -3].map((age) => ({ age, date: 0 })), // the checker's clock is behind
  ];
  let count = 0;
  for (const left of LEFT) {
    for (const fields of stated) {
      for (const { age, date } of edges.filter(({ age }) => age < left)) {
        const headers = new Headers(limited(fields, left));
        headers.set("Deprecation", SOUND.deprecation);
        headers.set("Sunset", sunset(left).toUTCString());
        headers.set("Date", new Date(NOW + date * 1000).toUTCString());
        if (age > 0) headers.set("Age", `${age}`);
        const { faults } = inspect({ status: 200, headers }, { now: NOW + age * 1000 });
        assertEquals(faults, [], JSON.stringify([left, age, date, ...headers]));
        count++;
      }
    }
  }
  assertEquals(count, 130);
});

Deno.test("inspect() returns what was announced, and reads it tolerantly", () => {
  const { faults: _, links, ...said } = inspected(SOUND);
  const expected = {
    state: "deprecated",
    deprecatedAt: DEPRECATED_AT,
    sunsetAt: SUNSET_AT,
    retryAt: undefined,
  };
  assertEquals<unknown>(said, expected);
  assertEquals(Object.fromEntries(links), {
    "successor-version": ["https://example.com/v2/songs"],
    "deprecation": ["https://docs.example/a,b"],
    "sunset": ["https://docs.example/a,b"],
  });
  const forms = ["1798761600", "@1798761600000", "Fri, 01 Jan 2027 00:00:00 GMT", "2027-01-01"];
  for (const text of [...forms, "Fri, 1 Jan 2027 02:00:00 +0200"]) {
    const { deprecatedAt, sunsetAt } = inspected({ deprecation: text, sunset: text });
    assertEquals([deprecatedAt, sunsetAt], [DEPRECATED_AT, DEPRECATED_AT], text);
  }
  for (const text of ["true", "soon", "2027-02-30", "Fri, 01 Jan 2027 00:00:00"]) {
    assertEquals(inspected({ deprecation: text }).deprecatedAt, undefined, text);
  }
  const [date, later] = [SOUND.sunset, "Thu, 01 Jul 2027 00:00:00 GMT"];
  for (const lines of [[date, date], [date, later], [later, date], [later, "2027-06-30", "soon"]]) {
    const headers = new Headers(SOUND);
    headers.delete("sunset");
    for (const line of lines) headers.append("Sunset", line);
    const { sunsetAt, faults } = inspect({ status: 200, headers, url: URL }, { now: NOW });
    const isOne = lines.every((line) => line === date);
    assertEquals([sunsetAt, faults.map(({ name }) => name)], [
      SUNSET_AT,
      isOne ? [] : ["invalid-sunset"],
    ]);
  }
  const soon = { ...SOUND, "retry-after": new Date(NOW + 60_000).toUTCString() };
  assertEquals(inspected(soon, 503).retryAt, NOW + 60_000);
  assertEquals(inspected(soon).retryAt, undefined);
  const headers = { Link: '<../b>; rel=Sunset; rel=next, <c>; title="a, b"; REL = "x\\y sunset"' };
  const { links: unresolved } = inspect(new Response(null, { headers }));
  assertEquals([...unresolved], [["sunset", ["../b", "c"]], ["xy", ["c"]]]);
});

Deno.test("inspect() derives the state from the status and the fields", () => {
  const out = { ...SOUND, "retry-after": new Date(NOW + 60_000).toUTCString() };
  const rows: [state: State, fields: Record<string, string>, status: number][] = [
    ["none", {}, 200],
    ["none", { "retry-after": "60", link: '</v2>; rel="successor-version"' }, 503],
    ...["?0", "false", "False", "?0;x=1"].map((deprecation): typeof rows[number] => {
      return ["none", { deprecation }, 200];
    }),
    ["announced", { deprecation: "?0", sunset: SOUND.sunset }, 200],
    ["announced", { ...SOUND, deprecation: "@1811808000" }, 200],
    ["announced", { sunset: SOUND.sunset }, 200],
    ["announced", { link: '</why>; rel="deprecation"' }, 404],
    ["deprecated", SOUND, 404],
    ["deprecated", { deprecation: "true" }, 200],
    ["deprecated", out, 429],
    ["deprecated", SOUND, 410], // an item that was unpublished
    ["deprecated", { ...SOUND, "retry-after": "60" }, 503], // a fault
    ["brownout", out, 503],
    ["brownout", out, 410],
    ["removed", { ...SOUND, sunset: PAST }, 410],
    ["removed", { ...out, sunset: PAST }, 503],
    ["removed", { ...SOUND, sunset: PAST }, 308],
  ];
  for (const [state, fields, status] of rows) {
    assertEquals(inspected(fields, status).state, state, JSON.stringify(fields));
  }
});
