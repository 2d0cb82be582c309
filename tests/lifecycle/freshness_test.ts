import { assert, assertEquals } from "@std/assert";
import fc from "../support/fast_check.ts";
import { parseDictionary } from "../support/structured_headers.ts";
import { formatHttpDate, parseHttpDate } from "../../lib/http/http_date.ts";
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
    { "cache-control": "no-store", "surrogate-control": 'max-age=60+900, content="ESI/1.0"' },
    {
      "cache-control": "no-store",
      "surrogate-control": `max-age=60, content="ESI/1.0", ${TAIL}`,
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

Deno.test("limitFreshness() never sets a negative age after the phase ends", () => {
  const { fields } = limitFreshness([["Cache-Control", "max-age=300"]], {
    until: NOW - 5000,
    now: NOW,
  });
  assertEquals(fields, [["Cache-Control", `max-age=0, ${TAIL}`]]);
});

Deno.test("limitFreshness() returns how long its values stay the same", () => {
  fc.assert(fc.property(
    fc.nat(500),
    fc.integer({ min: 1, max: 1_000_000 }),
    (maxAge, left) => {
      const until = NOW + left;
      const limitedAt = (now: number) =>
        limitFreshness([["Cache-Control", `max-age=${maxAge}`]], { until, now });
      const { unchangedUntil, fields } = limitedAt(NOW);
      assert(unchangedUntil > NOW && unchangedUntil <= until);
      assertEquals(limitedAt(unchangedUntil - 1).fields, fields);
      if (unchangedUntil < until) {
        assert(limitedAt(unchangedUntil).fields[0]?.[1] !== fields[0]?.[1]);
      }
    },
  ));
});

/** The properties of a cache that decide how long it reuses a response without revalidation. */
interface Cache {
  readonly isShared: boolean;
  /** Uses Cache-Control; otherwise Expires alone, as in HTTP/1.0. */
  readonly isModern: boolean;
  readonly knowsMustUnderstand: boolean;
  /** The field that it prefers to Cache-Control (RFC 9213), if any. */
  readonly target: string | undefined;
  /** Milliseconds for which it serves stale, unless the response gives a limit. */
  readonly grace: number;
  /** Counts in whole seconds, including the last one, as nginx does. */
  readonly isCoarse: boolean;
  /** Milliseconds until it receives the response. */
  readonly travel: number;
}

const caches: fc.Arbitrary<Cache> = fc.record({
  isShared: fc.boolean(),
  isModern: fc.boolean(),
  knowsMustUnderstand: fc.boolean(),
  target: fc.constantFrom(undefined, "cdn-cache-control", "a-cache-control", "surrogate-control"),
  grace: fc.constantFrom(0, 10_000),
  isCoarse: fc.boolean(),
  travel: fc.nat(999),
});

const HEURISTIC = 86_400; // seconds

/** Seconds of freshness, or `undefined` for a response that must not be reused. */
function lifetimeIn(cache: Cache, headers: Headers, received: number): number | undefined {
  const byExpires = lifetimeByExpires(headers, received);
  // Without Expires, an HTTP/1.0 cache uses heuristics, and nothing can prevent that.
  if (!cache.isModern) return byExpires ?? 0;
  const targeted = cache.target ? headers.get(cache.target) : null;
  const directives = parseDictionary(targeted ?? headers.get("cache-control") ?? "");
  const seconds = (name: string) => {
    const value = directives.get(name)?.[0];
    return value === undefined ? undefined : Number(value);
  };
  const isUnderstood = cache.knowsMustUnderstand && directives.has("must-understand");
  if (directives.has("no-store") && !isUnderstood) return undefined;
  if (directives.get("no-cache")?.[0] === true) return undefined;
  if (cache.isShared && directives.get("private")?.[0] === true) return undefined;
  return (cache.isShared ? seconds("s-maxage") : undefined) ?? seconds("max-age") ??
    (targeted === null ? byExpires : undefined) ?? HEURISTIC;
}

function lifetimeByExpires(headers: Headers, received: number): number | undefined {
  const expires = headers.get("expires");
  if (expires === null) return undefined;
  const date = parseHttpDate(headers.get("date") ?? "", received) ?? received;
  return ((parseHttpDate(expires, received) ?? date) - date) / 1000;
}

/** When a cache stops reusing a response without revalidation, in milliseconds since the epoch. */
function usedUntil(cache: Cache, headers: Headers): number {
  const received = NOW + cache.travel;
  const lifetime = lifetimeIn(cache, headers, received);
  const stale = staleIn(cache, headers);
  if (lifetime === undefined || lifetime <= 0 && stale === 0) return received;
  const end = received + Math.max(0, lifetime) * 1000;
  return (cache.isCoarse ? Math.floor(end / 1000) * 1000 + 999 : end) + stale;
}

/** Milliseconds for which a cache serves stale. */
function staleIn({ isModern, target, grace }: Cache, headers: Headers): number {
  if (!isModern) return 0;
  const targeted = target ? headers.get(target) : null;
  const said = parseDictionary(targeted ?? headers.get("cache-control") ?? "")
    .get("stale-while-revalidate")?.[0];
  return said === undefined ? grace : Number(said) * 1000;
}

const seconds = fc.oneof(fc.nat(10), fc.nat(2000));
const date = seconds.map((seconds) => inSeconds(seconds - 500));
const ages = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]
  .map((name) => seconds.map((seconds) => `${name}=${seconds}`));
const flags = fc.constantFrom(
  ...["public", "private", "no-store", "no-cache", "must-understand", "must-revalidate"],
  ...["proxy-revalidate", "immutable", 'no-cache="a, max-age=9"', 'private="b"', 'x="no-store"'],
);
const cacheControl = fc.array(fc.oneof(...ages, ...ages, flags), { maxLength: 5 })
  .map((directives) => directives.join(", "));
const targeted = cacheControl.filter((value) => value !== "");
const fields = fc.record({
  "cache-control": cacheControl,
  "cdn-cache-control": targeted,
  "a-cache-control": targeted,
  "surrogate-control": targeted,
  expires: fc.oneof(date, fc.constant("0")),
  date: fc.constant(inSeconds(0)),
}, { requiredKeys: [] });
const left = fc.oneof(fc.nat(5_000), fc.nat(2_000_000)).map((left) => left + 1000);

Deno.test("no cache reuses a response beyond its phase, whatever its fields", () => {
  let beyond = 0;
  fc.assert(
    fc.property(fields, caches, left, (stated, cache, left) => {
      const until = Math.ceil((NOW + left) / 1000) * 1000; // phases begin with a second
      const headers = new Headers(stated);
      if (usedUntil(cache, headers) >= until) beyond++;
      const sent = limited(headers, { until, now: NOW });
      const used = usedUntil(cache, sent);
      assert(used < until, `${new Date(used).toISOString()}: ${JSON.stringify([...sent])}`);
    }),
    { numRuns: 5000 },
  );
  assert(beyond > 1000, `only ${beyond} would have been reused beyond it`);
});
