import { assert, assertEquals } from "@std/assert";
import { formatHttpDate } from "../../lib/http/http_date.ts";
import { type FreshnessLimit, limitFreshness } from "../../lib/lifecycle/freshness.ts";

const NOW = Date.parse("2027-01-01T00:00:00Z");
const TAIL = "must-revalidate, stale-while-revalidate=0";
const inSeconds = (seconds: number) => formatHttpDate(NOW + seconds * 1000);

/** The same fields, limited. */
function limited(headers: Headers, limit: FreshnessLimit): Headers {
  return new Headers(limitFreshness([...headers], limit).fields);
}

/** Values of Cache-Control, and the same limited to 101 seconds left, one of them for transit. */
const VALUES: [stated: string, limited: string][] = [
  ["max-age=300", `max-age=100, ${TAIL}`],
  ["max-age=60", `max-age=60, ${TAIL}`],
  ["max-age=0", `max-age=0, ${TAIL}`],
  ['Max-Age="300"', `max-age=100, ${TAIL}`],
  ["max-age=soon", `max-age=0, ${TAIL}`],
  ["private, max-age=300, s-maxage=50", `private, max-age=100, s-maxage=50, ${TAIL}`],
  ["s-maxage=900, max-age=5", `s-maxage=100, max-age=5, ${TAIL}`],
  ["max-age=300, must-revalidate", `max-age=100, ${TAIL}`],
  ["max-age=50, stale-while-revalidate=900, stale-if-error=86400", `max-age=50, ${TAIL}`],
  ["stale-if-error=9, max-age=50", `max-age=50, ${TAIL}`],
  ['private="a, max-age=9", max-age=300', `private="a, max-age=9", max-age=100, ${TAIL}`],

  // A semicolon separates directives for nginx.
  ["public;max-age=3600", `public, max-age=100, ${TAIL}`],
  ["max-age=9; s-maxage = 900;stale-if-error=86400", `max-age=9, s-maxage=100, ${TAIL}`],
  ["no-cache;max-age=300", "no-cache, max-age=100"],
  ['private="a;b";max-age="300;9"', `private="a;b", max-age=0, ${TAIL}`],

  // Responses that are never reused need no limit, but get no age beyond the phase either.
  ["no-store", "no-store"],
  ["no-cache, max-age=300", "no-cache, max-age=100"],
  ["no-store, max-age=9, stale-while-revalidate=9", "no-store, max-age=9"],
  ['no-cache="set-cookie", max-age=300', `no-cache="set-cookie", max-age=100, ${TAIL}`],
  ['no-cache, no-cache="a"', `no-cache, no-cache="a", max-age=0, ${TAIL}`],
  [
    "max-age=300, must-understand, no-store",
    `max-age=100, must-understand, no-store, ${TAIL}`,
  ],
  ["must-understand, no-store", `must-understand, no-store, max-age=0, ${TAIL}`],
  ["must-understand, no-store, no-cache", "must-understand, no-store, no-cache"],
  ['max-age=300, x="no-store', "max-age=100, x=, no-store"],

  // Without max-age, private caches use heuristics.
  ["public", `public, max-age=0, ${TAIL}`],
  ["s-maxage=900", `s-maxage=100, max-age=0, ${TAIL}`],
];

type Fields = Record<string, string>;

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
    { "cache-control": `max-age=70, ${TAIL}`, date: inSeconds(-10), expires: inSeconds(60) },
  ],
  [
    { expires: inSeconds(-1) },
    { "cache-control": `max-age=0, ${TAIL}`, expires: inSeconds(-1) },
  ],
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
  [
    { "cache-control": "no-store", "cloudflare-cdn-cache-control": "max-age=86400" },
    { "cache-control": "no-store", "cloudflare-cdn-cache-control": `max-age=100, ${TAIL}` },
  ],
  [
    { "cache-control": "no-store", "surrogate-control": 'max-age=60+900, content="ESI/1.0";a' },
    {
      "cache-control": "no-store",
      "surrogate-control": `max-age=60, content="ESI/1.0", a, ${TAIL}`,
    },
  ],
  ...[
    ["900", "100"],
    ["60", "60"],
    ["0", "0"],
    [`@${NOW / 1000 + 900}`, `@${NOW / 1000 + 100}`],
    [`@${NOW / 1000 + 60}`, `@${NOW / 1000 + 60}`],
    ["off", "off"],
  ].map(([stated = "", limited = ""]): [Fields, Fields] => [
    { "cache-control": "no-store", "x-accel-expires": stated },
    { "cache-control": "no-store", "x-accel-expires": limited },
  ]),
];

Deno.test("limitFreshness() limits freshness to the time left in the phase", () => {
  for (const [stated, expected] of ROWS) {
    const headers = limited(new Headers(stated), { until: NOW + 101_999, now: NOW });
    assertEquals(Object.fromEntries(headers), expected, JSON.stringify(stated));
  }
});

Deno.test("limitFreshness() changes nothing when no phase change is pending", () => {
  for (const [stated] of ROWS) {
    const fields = [...new Headers(stated)];
    const until = Infinity;
    assertEquals(limitFreshness(fields, { until, now: NOW }), { fields, unchangedUntil: until });
  }
});

Deno.test("limitFreshness() returns how long its values stay the same", () => {
  for (const maxAge of [0, 1, 2, 60, 300, 500]) {
    for (let left = 1; left < 1_000_000; left += left < 3_000 ? 1 : 4_999) {
      const until = NOW + left;
      const limitedAt = (now: number) =>
        limitFreshness([["Cache-Control", `max-age=${maxAge}`]], { until, now });
      const { unchangedUntil, fields } = limitedAt(NOW);
      assert(unchangedUntil > NOW && unchangedUntil <= until);
      assertEquals(limitedAt(unchangedUntil - 1).fields, fields);
      if (unchangedUntil < until) {
        assert(limitedAt(unchangedUntil).fields[0]?.[1] !== fields[0]?.[1]);
      }
    }
  }
});
