import { assert, assertEquals } from "@std/assert";
import { formatHttpDate } from "../../lib/http/http_date.ts";
import type { Field } from "../../lib/http/outcome.ts";
import {
  type FreshnessLimit,
  limitFreshness,
  limitFreshnessForReuse,
} from "../../lib/lifecycle/freshness.ts";
import { needing } from "../support/permissions.ts";

const NOW = Date.parse("2027-01-01T00:00:00Z");
const NO_STALE = "stale-while-revalidate=0";
const TAIL = `must-revalidate, ${NO_STALE}`;
const GET = { method: "GET", status: 200, isAuthorized: false };
const inSeconds = (seconds: number) => formatHttpDate(NOW + seconds * 1000);

/** The same fields, limited. */
function limited(
  headers: Headers,
  limit: Partial<FreshnessLimit> & { until: number; now: number },
): Headers {
  return new Headers(limitFreshness([...headers], { ...GET, ...limit }));
}

/** Values of Cache-Control, and the same limited to 101 seconds left, one of them for transit. */
const VALUES: [stated: string, limited: string][] = [
  ["max-age=300", `max-age=100, ${TAIL}`],
  ["max-age=60", `max-age=60, ${TAIL}`],
  ["max-age=0", `max-age=0, ${TAIL}`],
  ["Max-Age=300", `Max-Age=100, ${TAIL}`],
  ["private, max-age=300, s-maxage=50", `private, max-age=100, s-maxage=50, ${TAIL}`],
  ["s-maxage=900, max-age=5", `s-maxage=100, max-age=5, ${TAIL}`],
  ["max-age=300, must-revalidate", `max-age=100, ${TAIL}`],
  ['private="a, b", max-age=300', `private="a, b", max-age=100, ${TAIL}`],
  ['x="no-store", max-age=300', `x="no-store", max-age=100, ${TAIL}`],
  ["x-no-store, max-age=300", `x-no-store, max-age=100, ${TAIL}`],

  // Caches read these in different ways, nginx in any part of the value.
  ...[
    ...['Max-Age="300"', "max-age=soon", "max-age=300x", "max-age=300.5", "max-age", "max-age=-1"],
    ...["public,\u00a0max-age=300", 'max-age=3, x="no-store', 'public, x="a\\"', "max-age=3 x"],
    ...["public;max-age=3600", "max-age=9, x;s-maxage = 900", "no-cache;max-age=300", "public;a"],
    ...['x="a, max-age=9"', "max-age = 9", "max-age=1d", "max-age=0d", "max-age=60+30"],
    "max-age=9\t, a",
  ].map((stated): [string, string] => [stated, "no-store"]),

  // The application's own limit on serving stale ends before the phase.
  ["max-age=50, stale-while-revalidate=50", "max-age=50, stale-while-revalidate=50"],
  ["max-age=50, stale-while-revalidate=0", "max-age=50, stale-while-revalidate=0"],
  ["stale-if-error=9, max-age=50", "stale-if-error=9, max-age=50"],
  // It does not.
  ["max-age=50, stale-while-revalidate=51", `max-age=50, ${NO_STALE}, must-revalidate`],
  [
    "max-age=50, stale-while-revalidate=9, stale-if-error=86400",
    `max-age=50, ${NO_STALE}, stale-if-error=0, must-revalidate`,
  ],
  // Varnish, which does not know stale-if-error, serves stale for 10 s.
  ["max-age=91, stale-if-error=1", `max-age=91, stale-if-error=0, ${TAIL}`],
  // Nor is there one for browsers, which ignore s-maxage.
  ["s-maxage=9, stale-while-revalidate=9", `s-maxage=9, ${NO_STALE}, max-age=0, must-revalidate`],

  // Responses that are never reused need no limit, but get no age beyond the phase either.
  ["no-store", "no-store"],
  ["no-cache, max-age=300", "no-cache, max-age=100, must-revalidate"],
  ["no-cache", "no-cache, must-revalidate"],
  [
    "no-cache, max-age=9, stale-while-revalidate=9",
    `no-cache, max-age=9, ${NO_STALE}, must-revalidate`,
  ],
  ["no-store, max-age=9, stale-while-revalidate=900", `no-store, max-age=9, ${NO_STALE}`],
  ['no-cache="set-cookie", max-age=300', `no-cache="set-cookie", max-age=100, ${TAIL}`],
  ['no-cache, no-cache="a"', `no-cache, no-cache="a", max-age=0, ${TAIL}`],
  ["max-age=300, must-understand, no-store", `max-age=100, must-understand, no-store, ${TAIL}`],
  ["must-understand, no-store", `must-understand, no-store, max-age=0, ${TAIL}`],
  ["must-understand, no-store, no-cache", "must-understand, no-store, no-cache"],

  // Without max-age, private caches use heuristics.
  ["public", `public, max-age=0, ${TAIL}`],
  ["s-maxage=900", `s-maxage=100, max-age=0, ${TAIL}`],
];

type Fields = Record<string, string>;

/** Fields that are said beside no-store, with values, and the same limited if they are. */
const BESIDE: [names: string[], values: [stated: string, limited?: string][]][] = [
  [["cloudflare-cdn-cache-control"], [["max-age=86400", `max-age=100, ${TAIL}`]]],
  // Without a lifetime of their own, surrogates use Cache-Control, and so do others without any value.
  [["cdn-cache-control"], [[""]]],
  [["edge-control", "surrogate-control"], [
    ...[['content="ESI/1.0"'], [""], ["!no-store"], ["downstream-ttl=9"]] as [string][],
    ["max-age=900", `max-age=100, ${TAIL}`],
    ['max-age=900, content="ESI/1.0"', `max-age=100, content="ESI/1.0", ${TAIL}`],
    ["cache-maxage=900,!no-store", `cache-maxage=100,!no-store, ${TAIL}`],
    // What is no plain number of seconds counts as days, and what cannot be read as a year.
    ["cache-maxage=1d,downstream-ttl=1h", "no-store"],
    ["!no-store, max-age=1s", "no-store"],
    ['max-age=60+0, content="ESI/1.0";a', "no-store"],
    ["max-age", "no-store"],
    ["max-age=60;a", "no-store"],
    ["@", "no-store"],
  ]],
  [["x-accel-expires"], [
    ["900", "100"],
    ["60", "60"],
    ["0", "0"],
    [`@${NOW / 1000 + 900}`, `@${NOW / 1000 + 100}`],
    [`@${NOW / 1000 + 60}`, `@${NOW / 1000 + 60}`],
    ["1d", "0"],
    ["off", "0"],
    ["", "0"],
  ]],
];

/** Fields of a response, and the same limited. Without max-age, private caches use Expires. */
const ROWS: [stated: Fields, limited: Fields][] = [
  ...VALUES.map(([stated, limited]): [Fields, Fields] => [
    { "cache-control": stated },
    { "cache-control": limited },
  ]),
  [{}, { "cache-control": `max-age=0, ${TAIL}` }],
  [
    { "cache-control": "s-maxage=900", expires: inSeconds(60) },
    { "cache-control": `s-maxage=100, max-age=60, ${TAIL}`, expires: inSeconds(60) },
  ],
  [
    { "cache-control": "s-maxage=30", expires: inSeconds(900) },
    { "cache-control": `s-maxage=30, max-age=100, ${TAIL}`, expires: inSeconds(100) },
  ],
  [
    { expires: inSeconds(60), date: inSeconds(-10) },
    { "cache-control": `max-age=60, ${TAIL}`, date: inSeconds(-10), expires: inSeconds(60) },
  ],
  [
    { expires: inSeconds(900), date: inSeconds(-10) },
    { "cache-control": `max-age=100, ${TAIL}`, date: inSeconds(-10), expires: inSeconds(90) },
  ],
  [{ expires: inSeconds(-1) }, { "cache-control": `max-age=0, ${TAIL}`, expires: inSeconds(-1) }],
  [{ expires: "0" }, { "cache-control": `max-age=0, ${TAIL}`, expires: formatHttpDate(0) }],
  [
    { expires: inSeconds(900), "cache-control": "max-age=7" },
    { "cache-control": `max-age=7, ${TAIL}`, expires: inSeconds(100) },
  ],
  [ // an HTTP/1.0 cache does not know no-store
    { expires: inSeconds(900), "cache-control": "no-store" },
    { "cache-control": "no-store", expires: inSeconds(100) },
  ],
  [
    { "cache-control": "max-age=5", "cdn-cache-control": "max-age=900" },
    { "cache-control": `max-age=5, ${TAIL}`, "cdn-cache-control": `max-age=100, ${TAIL}` },
  ],
  ...BESIDE.flatMap(([names, values]) =>
    values.map(([stated, limited = stated]): [Fields, Fields] => {
      const all = (value: string): Fields => {
        return {
          "cache-control": "no-store",
          ...Object.fromEntries(names.map((name) => [name, value])),
        };
      };
      return [all(stated), all(limited)];
    })
  ),
];

Deno.test("limitFreshness() limits freshness to the time left in the phase", () => {
  for (const [stated, expected] of ROWS) {
    const headers = limited(new Headers(stated), { until: NOW + 101_999, now: NOW });
    assertEquals(Object.fromEntries(headers), expected, JSON.stringify(stated));
  }
});

Deno.test("limitFreshness() adds nothing that lets a cache keep a response", () => {
  const [POST, AUTHORIZED] = [{ ...GET, method: "POST" }, { ...GET, isAuthorized: true }];
  const untold = { ...GET, isAuthorized: undefined as unknown as boolean }; // from JavaScript
  const [FOUND, FORBIDDEN, FAILED] = [302, 403, 500].map((status) => ({ ...GET, status }));
  const rows: [stated: string, limited: string | null, ...of: (typeof GET | undefined)[]][] = [
    // No lifetime may be assumed.
    ["", null, POST, FOUND, FORBIDDEN, FAILED, { ...POST, status: 404 }],
    ["stale-if-error=9", "stale-if-error=0", POST, FOUND, FORBIDDEN, FAILED],
    ["public", "public", POST],
    ['private="a"', 'private="a"', FOUND],
    ["public", `public, max-age=0, ${TAIL}`, FOUND, FORBIDDEN, FAILED],
    ["private", `private, max-age=0, ${TAIL}`, FOUND],
    ["s-maxage=300", `s-maxage=100, ${TAIL}`, POST, FOUND],
    ["max-age=300", `max-age=100, ${TAIL}`, POST, FOUND, FORBIDDEN, FAILED],
    ["", `max-age=0, ${TAIL}`, { ...GET, method: "HEAD" }],
    // A shared cache may reuse the response to an authorized request if it says so.
    ["", `max-age=0, ${NO_STALE}`, AUTHORIZED, untold],
    ["max-age=300", `max-age=100, ${NO_STALE}`, AUTHORIZED, untold],
    ["private, max-age=300", `private, max-age=100, ${NO_STALE}`, AUTHORIZED],
    ['public="a", max-age=300', `public="a", max-age=100, ${NO_STALE}`, AUTHORIZED],
    ["s-maxage=soon, max-age=9", "no-store", AUTHORIZED],
    ["no-cache", "no-cache", AUTHORIZED],
    ["public, max-age=300", `public, max-age=100, ${TAIL}`, AUTHORIZED],
    ["s-maxage=300", `s-maxage=100, max-age=0, ${TAIL}`, AUTHORIZED],
    ["max-age=300, must-revalidate", `max-age=100, ${TAIL}`, AUTHORIZED],
  ];
  for (const [stated, expected, ...of] of rows) {
    for (const request of of) {
      const headers = new Headers(stated ? { "Cache-Control": stated } : {});
      const said = limited(headers, { until: NOW + 101_999, now: NOW, ...request });
      assertEquals(said.get("cache-control"), expected, JSON.stringify([stated, request]));
    }
  }
});

/** What a 304 says in some field, and what is sent with 101 seconds and with 1 second left. */
const UPDATES: [name: string, stated: string, early: string, late: string][] = [
  ["cache-control", "max-age=300", `max-age=100, ${TAIL}`, `max-age=1, ${TAIL}`],
  ["cache-control", "max-age=00", `max-age=1, ${TAIL}`, `max-age=1, ${TAIL}`],
  [
    "cache-control",
    "s-maxage=0, max-age=60",
    `s-maxage=1, max-age=60, ${TAIL}`,
    `s-maxage=1, max-age=1, ${TAIL}`,
  ],
  ["cache-control", "public", `public, max-age=1, ${TAIL}`, `public, max-age=1, ${TAIL}`],
  [
    "cache-control",
    "max-age=0, stale-while-revalidate=50",
    "max-age=1, stale-while-revalidate=50",
    "max-age=1, stale-while-revalidate=0, must-revalidate",
  ],
  ["cache-control", "public;max-age=9", `max-age=1, ${TAIL}`, `max-age=1, ${TAIL}`],
  ["cdn-cache-control", "max-age=0", `max-age=1, ${TAIL}`, `max-age=1, ${TAIL}`],
  ["surrogate-control", "max-age=60+30", `max-age=1, ${TAIL}`, `max-age=1, ${TAIL}`],
  ["edge-control", "cache-maxage=1d", `max-age=1, ${TAIL}`, `max-age=1, ${TAIL}`],
  ["surrogate-control", "no-store", "no-store", "no-store"],
  ["surrogate-control", "no-store, max-age=1d", "no-store", "no-store"],
  ["x-accel-expires", "900", "100", "1"],
  ["x-accel-expires", "0", "1", "1"],
  ["x-accel-expires", "1d", "1", "1"],
  ["x-accel-expires", "@0", "@1", "@1"],
];

Deno.test("limitFreshness() lets a 304 never state less than a second", () => {
  const NONE = `max-age=1, ${TAIL}`;
  for (const [name, stated, ...sent] of UPDATES) {
    for (const [index, left] of [101_999, 1_999].entries()) {
      const until = NOW + left;
      const headers = limited(new Headers({ [name]: stated }), { until, now: NOW, status: 304 });
      const expected = { "cache-control": NONE, [name]: sent[index] };
      assertEquals<unknown>(Object.fromEntries(headers), expected, `${name}: ${stated}`);
      const again = limited(headers, { until, now: NOW, status: 304 });
      assertEquals([...again], [...headers]);
    }
  }
  assertEquals(
    Object.fromEntries(limited(new Headers(), { until: NOW + 1, now: NOW, status: 304 })),
    { "cache-control": NONE },
  );
});

Deno.test("limitFreshness() tells nginx the lifetime of a 304 that forbids others to reuse it", () => {
  const at = { until: NOW + 101_999, now: NOW, status: 304 };
  const rows: [stated: string, limited: string][] = [
    ["no-cache", `no-cache, max-age=1, ${TAIL}`],
    ["no-store", `no-store, max-age=1, ${TAIL}`],
    ["no-store;a", `no-store, max-age=1, ${TAIL}`],
    ["private, max-age=300", `private, max-age=100, ${TAIL}`],
    ['no-cache="a", max-age=300', `no-cache="a", max-age=100, ${TAIL}`],
  ];
  for (const [stated, expected] of rows) {
    const headers = new Headers({ "cache-control": stated });
    const said = Object.fromEntries(limited(headers, at));
    assertEquals(said, { "cache-control": expected, "x-accel-expires": "1" });
    // Nobody needs it on what is stored as a whole.
    assertEquals(limited(headers, { ...at, status: 200 }).has("x-accel-expires"), false);
    headers.set("x-accel-expires", "900");
    assertEquals(limited(headers, at).get("x-accel-expires"), "100");
  }
});

/** Values that stay if so many seconds are left, and what is sent with fewer. */
const DAYS = 60 * 86_400;
const YEAR = 365 * 86_400;
const GRACE = 10; // for which Varnish serves stale
const KEPT: [name: string, value: string, seconds: number, replacement: string][] = [
  ["edge-control", "cache-maxage=60d", DAYS + GRACE, "no-store"],
  ["edge-control", "max-age=60h,downstream-ttl=9m", DAYS + GRACE, "no-store"],
  ["edge-control", "!no-store, max-age=60s", DAYS + GRACE, "no-store"],
  ["edge-control", "max-age=soon", YEAR + GRACE, "no-store"],
  ["surrogate-control", "max-age=59+1", DAYS + GRACE, "no-store"],
  ["surrogate-control", 'max-age=60+0, content="ESI/1.0"', DAYS + GRACE, "no-store"],
  ["surrogate-control", "max-age=60+0, stale-if-error=90", DAYS + 90, "no-store"],
  ["x-accel-expires", "60d", DAYS, "0"],
  ["x-accel-expires", "off", YEAR, "0"],
];

Deno.test("limitFreshness() keeps what ends in time even if its digits are days", () => {
  for (const [name, value, seconds, replacement] of KEPT) {
    const at = (milliseconds: number, status = 200) =>
      limitFreshnessForReuse([["cache-control", "no-store"], [name, value]], {
        ...{ until: NOW + 1000 + milliseconds, now: NOW },
        ...{ ...GET, status },
      });
    const { fields, unchangedUntil } = at(seconds * 1000);
    assertEquals([fields[1], unchangedUntil], [[name, value], NOW + 1]);
    assertEquals(at(seconds * 1000 - 1).fields[1], [name, replacement]);
    // nginx ignores such a value, and reads no lifetime beside no-store.
    const [, update] = at(seconds * 1000, 304).fields;
    assertEquals(update, [name, name === "x-accel-expires" ? "1" : value]);
  }
});

Deno.test("limitFreshness() shortens lifetimes by as much as Date is ahead of the clock", () => {
  const date = inSeconds(60);
  const stated = { "cache-control": "max-age=300", date, expires: inSeconds(900) };
  const said = limited(new Headers(stated), { until: NOW + 101_999, now: NOW });
  const expected = { "cache-control": `max-age=40, ${TAIL}`, date, expires: inSeconds(100) };
  assertEquals(Object.fromEntries(said), expected);
});

Deno.test("limitFreshness() changes nothing when no phase change is pending", () => {
  for (const [stated] of ROWS) {
    const fields = [...new Headers(stated)];
    const until = Infinity;
    const limit = { until, now: NOW, ...GET };
    assertEquals(limitFreshness(fields, limit), fields);
    assertEquals(limitFreshnessForReuse(fields, limit), { fields, unchangedUntil: until });
  }
});

Deno.test("limitFreshnessForReuse() returns how long its values stay the same", () => {
  const rows = [0, 1, 2, 60, 300, 500].flatMap((maxAge) => [[maxAge, 200], [maxAge, 304]] as const);
  for (const [maxAge, status] of rows) {
    for (let left = 1; left < 1_000_000; left += left < 3_000 ? 7 : 4_999) {
      const until = NOW + left;
      const more = maxAge % 3 === 0 ? "" : ", stale-while-revalidate=9";
      const stated: Field[] = [["Cache-Control", `max-age=${maxAge}${more}`]];
      const limitedAt = (now: number) =>
        limitFreshnessForReuse(stated, { until, now, ...GET, status });
      const { unchangedUntil, fields } = limitedAt(NOW);
      assert(unchangedUntil > NOW && unchangedUntil <= until);
      assertEquals(limitedAt(unchangedUntil - 1).fields, fields);
      if (unchangedUntil < until) {
        assert(limitedAt(unchangedUntil).fields[0]?.[1] !== fields[0]?.[1]);
      }
    }
  }
});

needing("files")("the README's table shows what limitFreshness() sends", () => {
  const readme = Deno.readTextFileSync(new URL("../../lib/lifecycle/README.md", import.meta.url));
  const [, section = ""] = readme.split("## What changes for caches\n");
  const until = Date.parse(/a change at (\S+Z)/.exec(section)?.[1] ?? "");
  const rows = [...section.matchAll(/^\| (.*?) +\| (.*?) +\| (.*?) +\|$/gm)].slice(2);
  assertEquals(rows.length, 10);
  for (const [line, yours = "", ...sent] of rows) {
    const [, name = "Cache-Control", stated = ""] = /^`(\S+): (.*)`$/.exec(yours) ?? [];
    const status = yours.includes("304") ? 304 : 200;
    for (const [index, left] of [200 * 86_400_000, 120_000].entries()) {
      const expected = sent[index]?.replace("the same", `\`${stated}\``).replace("…", TAIL);
      const headers = limited(new Headers(stated ? { [name]: stated } : {}), {
        ...{ until, now: until - left, status },
      });
      assertEquals(`\`${headers.get(name)}\``, expected, line);
    }
  }
});
