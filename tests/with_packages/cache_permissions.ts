/**
 * What caches may do with a response, before and after the library has limited it, and with the
 * refusal that it sends in place of a response: for any fields,
 * request, status and cache, by an oracle written from RFC 9111.
 */

// deno-lint-ignore-file no-import-prefix -- a start would download what the import map has

import { assert } from "@std/assert";
import fc from "npm:fast-check@4.10.2";
import { formatHttpDate } from "../../lib/http/http_date.ts";
import { limitFreshness } from "../../lib/lifecycle/freshness.ts";
import { keepRestrictions } from "../../lib/lifecycle/restrictions.ts";
import {
  type Cache,
  type Exchange,
  mayServeForever,
  mayStore,
  reusedAfterUpdate,
  reusedUntil,
} from "../support/rfc9111_cache.ts";

const NOW = Date.parse("2027-01-01T00:00:00.250Z");
const TARGETS = ["cdn-cache-control", "a-cache-control"];
const SURROGATES = ["surrogate-control", "edge-control"];
const inSeconds = (seconds: number) => formatHttpDate(NOW + seconds * 1000);

const caches: fc.Arbitrary<Cache> = fc.record({
  isShared: fc.boolean(),
  isModern: fc.constantFrom(true, true, true, false),
  knowsMustUnderstand: fc.boolean(),
  target: fc.constantFrom(undefined, ...TARGETS, ...SURROGATES),
  isNginx: fc.constantFrom(true, false, false),
  acceptsQuoted: fc.boolean(),
  invalid: fc.constantFrom("stale", "ignored"),
  chosen: fc.constantFrom("first", "last"),
  counts: fc.constantFrom("from receipt", "from Date", "by age"),
  grace: fc.constantFrom(0, 10_000),
  isCoarse: fc.boolean(),
  travel: fc.nat(749), // received within a second after the one in Date
});

const seconds = fc.oneof(fc.nat(10), fc.nat(2000));
const AGES = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error", "Max-Age"];
const ages = AGES.map((name) =>
  fc.tuple(seconds, fc.constantFrom(["=", ""], ["=", ""], ["=", ""], ['="', '"'], ["=", "x"]))
    .map(([seconds, [before, after]]) => `${name}${before}${seconds}${after}`)
);
const usual = [
  ...["public", "private", "no-store", "no-cache", "must-understand", "must-revalidate"],
  ...["proxy-revalidate", "immutable", 'no-cache="a, max-age=9"', 'private="b"', 'x="no-store"'],
  ...["x-no-store", 'y="a, public"', "max-age=soon", "s-maxage=soon", 'public="a"'],
];
/** Not for targeted fields, which most of these would make malformed as a whole. */
const odd = [
  ...["PUBLIC", "No-Store", "", "\u00a0public", "\u00a0max-age=9", "max-age = 9", 'x="a'],
  ...['public="a";max-age="0"', 'private="a;b"', 'x="a\\", public, b"'],
];
const selector = (flag: string) => flag.toLowerCase().split("=")[0] ?? "";
const valueWith = (flags: readonly string[], ...separators: string[]) =>
  fc.tuple(
    fc.array(fc.oneof(...ages), { maxLength: 3 }),
    fc.uniqueArray(fc.constantFrom(...flags), { maxLength: 3, selector }),
    fc.boolean(),
    fc.constantFrom(...separators),
  ).map(([ages, flags, isFlagFirst, separator]) =>
    (isFlagFirst ? [...flags, ...ages] : [...ages, ...flags]).join(separator)
  );
/** For surrogates' fields, in which lifetimes have other forms. */
const surrogate = fc.array(
  fc.oneof(
    ...["max-age", "cache-maxage"].flatMap((name) => [
      seconds.map((seconds) => `${name}=${seconds}`),
      fc.tuple(fc.nat(9), fc.constantFrom("s", "m", "h", "d", "x", "+9", "+900", ";a"))
        .map(([number, form]) => `${name}=${number}${form}`),
    ]),
    fc.constantFrom("no-store", "!no-store", "bypass-cache", 'content="ESI/1.0"', "a;b", "max-age"),
    ages[2] ?? fc.constant(""),
  ),
  { maxLength: 3 },
).map((members) => members.join(", "));
const accel = fc.oneof(
  seconds.map(String),
  seconds.map((seconds) => `@${Math.floor(NOW / 1000) + seconds - 500}`),
  fc.constantFrom("0", "1d", "off", "9s", "@0"),
);
const fields = fc.record({
  "cache-control": valueWith([...usual, ...odd], ", ", "\t,", ";"), // the last one for nginx
  ...Object.fromEntries(SURROGATES.map((name) => [name, surrogate])),
  "x-accel-expires": accel,
  ...Object.fromEntries(TARGETS.map((name) => [name, valueWith(usual, ", ", ",")])),
  expires: fc.oneof(seconds.map((seconds) => inSeconds(seconds - 500)), fc.constant("0")),
  date: fc.constantFrom(-30, 0, 0, 40).map(inSeconds),
}, { requiredKeys: [] });
/** Several for each response, because only some caches read what is rare. */
const several = fc.array(caches, { minLength: 4, maxLength: 4 });
const left = fc.oneof(fc.nat(5_000), fc.nat(2_000_000), fc.nat(50).map((days) => days * 86_400_000))
  .map((left) => left + 1000);
const requests = fc.record({
  method: fc.constantFrom("GET", "GET", "HEAD", "POST", "PUT"),
  isAuthorized: fc.boolean(),
  status: fc.constantFrom(200, 200, 206, 302, 403, 404, 410, 500, 503),
});

/** Returns a response as it is sent, and limited. The server adds a Date that is missing. */
function exchanges(
  stated: Record<string, string>,
  request: Omit<Exchange, "headers" | "sent">,
  until: number,
  sent = NOW,
): [before: Exchange, after: Exchange] {
  const fields = Object.entries(stated);
  const limited = limitFreshness(fields, { until, now: sent, ...request });
  return [fields, limited].map((fields) => {
    const headers = new Headers({ date: formatHttpDate(sent) });
    for (const [name, value] of fields) headers.set(name, value);
    return { ...request, headers, sent };
  }) as [Exchange, Exchange];
}

Deno.test("no cache may do with a response what it could not without the library, or beyond the phase", () => {
  const count = { unstorable: 0, beyond: 0 };
  const check = (cache: Cache, [before, after]: [Exchange, Exchange], until: number) => {
    const note = JSON.stringify([...after.headers]);
    assert(mayStore(cache, before) || !mayStore(cache, after), `stored: ${note}`);
    const end = reusedUntil(cache, after);
    assert(end <= reusedUntil(cache, before), `reused: ${note}`);
    assert(mayServeForever(cache, before) || !mayServeForever(cache, after), note);
    assert(end < until, `until ${new Date(end).toISOString()}: ${note}`);
    // A cache that is cut off may serve stale only what was left as it is.
    const isLeft = after.isAuthorized ||
      [...TARGETS, ...SURROGATES, "cache-control"].some((name) => {
        const value = after.headers.get(name) ?? "";
        const isOdd = SURROGATES.includes(name) && value !== "";
        return (isOdd || /stale-/.test(value)) && value === before.headers.get(name);
      });
    assert(isLeft || !mayServeForever(cache, after), `forever: ${note}`);
    if (!mayStore(cache, before)) count.unstorable++;
    if (reusedUntil(cache, before) >= until) count.beyond++;
  };
  fc.assert(
    fc.property(fields, requests, several, left, (stated, request, caches, left) => {
      const until = Math.ceil((NOW + left) / 1000) * 1000; // phases begin with a second
      const both = exchanges(stated, request, until);
      for (const cache of caches) check(cache, both, until);
    }),
    { numRuns: 6_000 },
  );
  assert(count.unstorable > 3_000 && count.beyond > 1_000, JSON.stringify(count));
});

Deno.test("no cache may do with a refusal what it could not with the application's own response", () => {
  const count = { unstorable: 0, stored: 0 };
  const facts = fc.record({
    said: fields,
    maxAge: fc.option(fc.nat(2000)),
    request: fc.record({
      method: fc.constantFrom("GET", "HEAD"),
      isAuthorized: fc.boolean(),
      status: fc.constantFrom(308, 410),
    }),
  });
  const check = (cache: Cache, [before, after]: [Exchange, Exchange]) => {
    const note = JSON.stringify([cache, [...before.headers], [...after.headers]]);
    assert(mayStore(cache, before) || !mayStore(cache, after), `stored: ${note}`);
    assert(reusedUntil(cache, after) <= reusedUntil(cache, before), `reused: ${note}`);
    if (!mayStore(cache, before)) count.unstorable++;
    if (mayStore(cache, after)) count.stored++;
  };
  fc.assert(
    fc.property(facts, several, ({ said: stated, maxAge, request }, caches) => {
      const said: Record<string, string> = stated;
      const refused = maxAge === null ? "no-store" : `max-age=${maxAge}`;
      const kept = keepRestrictions([["cache-control", refused]], Object.entries(said), NOW);
      for (const cache of caches) {
        // nginx stores nothing without a lifetime, and may store a refusal for the one it states.
        const control = said["cache-control"] ?? "";
        const isUntold = cache.isNginx && !/max-?age=/i.test(control) && !said["expires"] &&
          said["x-accel-expires"] === undefined;
        const told = isUntold ? { "cache-control": `max-age=86400, ${control}` } : {};
        const date = { date: said["date"] ?? inSeconds(0) };
        check(
          cache,
          [{ ...said, ...told, ...date }, { ...Object.fromEntries(kept), ...date }]
            .map((fields) => ({ ...request, headers: new Headers(fields), sent: NOW })) as [
              Exchange,
              Exchange,
            ],
        );
      }
    }),
    { numRuns: 6_000 },
  );
  assert(count.unstorable > 3_000 && count.stored > 1_000, JSON.stringify(count));
});

Deno.test("no cache reuses what a 304 has updated more than two seconds beyond the phase", () => {
  const count = { reused: 0, beyond: 0 };
  const facts = fc.record({
    said: fields,
    other: fields,
    request: fc.record({ method: fc.constantFrom("GET", "HEAD"), isAuthorized: fc.boolean() }),
    left: fc.oneof(fc.nat(3_000), fc.nat(2_000_000)),
    ago: fc.nat(2_000_000),
  });
  const check = (cache: Cache, [before, after]: [number, number], until: number, note: string) => {
    assert(after < until + 2000, `until ${new Date(after).toISOString()}: ${note}`);
    assert(after <= Math.max(before, NOW + cache.travel + 1000) + 1000, `reused: ${note}`);
    if (after > 0) count.reused++;
    if (before >= until + 2000) count.beyond++;
  };
  fc.assert(
    fc.property(facts, several, ({ said, other, request, left, ago }, caches) => {
      const until = Math.ceil((NOW + left) / 1000) * 1000;
      const stated = { ...said, date: formatHttpDate(NOW - ago) };
      // A 304 has the same fields for caches as its 200 (RFC 9110 §15.4.5), but for Cache-Control.
      const update: Record<string, string> = { ...said, ...other, date: inSeconds(0) };
      for (const name of ["expires", ...TARGETS, ...SURROGATES]) {
        if (!(name in said)) delete update[name];
      }
      if (!("cache-control" in other)) {
        delete update["cache-control"];
        if ("cache-control" in said) delete update["expires"]; // which would count in its place
      }
      const stored = exchanges(stated, { ...request, status: 200 }, until, NOW - ago);
      const updates = exchanges(update, { ...request, status: 304 }, until);
      const note = JSON.stringify([stored, updates].map(([, { headers }]) => [...headers]));
      for (const cache of caches) {
        const before = reusedAfterUpdate(cache, stored[0], updates[0]);
        const after = reusedAfterUpdate(cache, stored[1], updates[1]);
        check(cache, [before, after], until, `${JSON.stringify(cache)} ${note}`);
      }
    }),
    { numRuns: 6_000 },
  );
  assert(count.reused > 3_000 && count.beyond > 1_000, JSON.stringify(count));
});
