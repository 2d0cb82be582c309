/** Properties of the lifecycle library for any fields, by random fields and independent parsers. */

// deno-lint-ignore-file no-import-prefix -- a start would download what the import map has

import { assert, assertEquals } from "@std/assert";
import fc from "npm:fast-check@4.10.2";
import { parseDictionary, parseItem } from "npm:structured-headers@2.1.0";
import { formatHttpDate, parseHttpDate } from "../../lib/http/http_date.ts";
import { parseLinks } from "../../lib/http/link.ts";
import { limitFreshness } from "../../lib/lifecycle/freshness.ts";
import { inspect } from "../../lib/lifecycle/inspect.ts";

const NOW = Date.parse("2027-01-01T00:00:00Z");
const inSeconds = (seconds: number) => formatHttpDate(NOW + seconds * 1000);

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
const cacheControl = fc.tuple(
  fc.array(fc.oneof(...ages, ...ages, flags), { maxLength: 5 }),
  fc.constantFrom(", ", ", ", ";"), // the last for nginx
).map(([directives, separator]) => directives.join(separator));
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
      const sent = new Headers(limitFreshness([...headers], { until, now: NOW }).fields);
      const used = usedUntil(cache, sent);
      assert(used < until, `${new Date(used).toISOString()}: ${JSON.stringify([...sent])}`);
    }),
    { numRuns: 5000 },
  );
  assert(beyond > 1000, `only ${beyond} would have been reused beyond it`);
});

const parts = [
  ...["@", "-", "1798761600", ".5", "true", "?1", ";", " ", "a", "=", '"b"', '"', ":YQ==:", "%"],
  ...[",", "*", "\\"],
];
const values = fc.array(fc.oneof(fc.constantFrom(...parts), fc.string({ maxLength: 3 })), {
  maxLength: 8,
})
  .map((parts) => parts.join(""));
const dates = fc.tuple(fc.constantFrom("@1", "@-1", "@253402300799", "@253402300800"), values)
  .map(([date, rest]) => `${date};a${rest}`);

Deno.test("inspect() accepts the same dates as an independent parser", () => {
  const valid = new Set<boolean>();
  fc.assert(
    fc.property(fc.oneof(values, dates), (value) => {
      const headers = sendable({ deprecation: value });
      const sent = headers?.get("deprecation") ?? undefined;
      if (sent === undefined) return;
      let isDate = false;
      try {
        // It rejects parameters of a Date, but not those of its Integer (RFC 9651 §4.2.9).
        const [seconds] = parseItem(sent.replace(/^@/, ""));
        isDate = /^@-?\d+(?![\d.])/.test(sent) && Math.abs(Number(seconds)) <= 253_402_300_799;
      } catch { /* malformed */ }
      const { faults } = inspect({ status: 400, headers: new Headers(headers), url: "" });
      const isAccepted = faults.every(({ name }) => name !== "invalid-deprecation");
      // Parameters mean nothing here, so malformed ones may pass.
      if (isDate || !sent.includes(";")) assertEquals(isAccepted, isDate, sent);
      valid.add(isDate);
    }),
    { numRuns: 5000, examples: [['@1;a=%"b"'], ['@1;a="b"']] },
  );
  assertEquals(valid.size, 2);
});

Deno.test("inspect() never throws, whatever a server sends", () => {
  const names = [
    ...["deprecation", "sunset", "link", "cache-control"],
    ...["expires", "date", "retry-after", "surrogate-control"],
  ];
  const text = fc.oneof(
    values,
    fc.string(),
    fc.constantFrom("<__proto__>; rel=__proto__", "<//>;rel=sunset"),
  );
  const fields = fc.dictionary(fc.constantFrom(...names), text);
  const status = fc.constantFrom(200, 304, 308, 410, 503, 0);
  fc.assert(
    fc.property(fields, status, fc.constantFrom("", "http://a/", "x"), (fields, status, url) => {
      const headers = sendable(fields);
      if (headers !== undefined) inspect({ status, headers, url });
    }),
  );
});

Deno.test("parseLinks() reads what was written", () => {
  const rel = fc.array(fc.constantFrom("sunset", "next", "https://a/b,c;d"), { minLength: 1 });
  const target = fc.constantFrom("/a", "/a,b;c=d", "https://a/?q=\"'", "");
  const extra = fc.constantFrom(
    "",
    '; title="<x>, \\"y\\"; rel=z"',
    "; a",
    " ;; b=c",
    "; rel=late",
  );
  fc.assert(fc.property(fc.array(fc.record({ target, rel, extra })), (links) => {
    const value = links.map(({ target, rel, extra }) =>
      `<${target}>; rel="${rel.join(" ")}"${extra}`
    );
    assertEquals(
      parseLinks(value.join(" , ")),
      links.map(({ target, rel }) => ({ target, rel })),
    );
  }));
});

/** Returns fields as they can be sent, if they can. */
function sendable(fields: Record<string, string>): Headers | undefined {
  try {
    return new Headers(fields);
  } catch {
    return undefined;
  }
}
