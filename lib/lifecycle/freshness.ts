/** Limits on caching, so that no cached response outlives the phase in which it was sent. */

import { formatHttpDate, parseHttpDate } from "../http/http_date.ts";
import type { Field } from "../http/outcome.ts";
import {
  Directives,
  inDays,
  isCacheControl,
  isSurrogate,
  limitAges,
  prohibitsReuse,
} from "./cache_control.ts";

/**
 * Milliseconds allowed for a response to reach a cache. Few caches correct for this delay (RFC 9111
 * §4.2.3). Most count the age from receipt, some of them in whole seconds.
 */
const TRAVEL_MS = 1000;

/** Statuses that caches may store without explicit freshness (RFC 9110 §15.1). */
export const HEURISTICALLY_CACHEABLE: ReadonlySet<number> = new Set(
  [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501],
);

/** The facts that limit a response's freshness. Times are milliseconds since the epoch. */
export interface FreshnessLimit {
  /** When the response's phase ends; `Infinity` if it never does. */
  readonly until: number;
  /** When the response is sent. */
  readonly now: number;
  /** The method of the request. */
  readonly method: string;
  /** The status of the response. */
  readonly status: number;
  /** Whether the request has Authorization. Pass `false` if everybody gets the same response. */
  readonly isAuthorized: boolean;
}

/**
 * Limits a response's freshness (RFC 9111 §4.2) to the time left in the phase, for shared and
 * private caches alike. While a phase change is pending, caches must not serve the response stale
 * (§4.2.4) beyond it, nor guess its freshness (§4.2.2). If they could guess it, the response gets a
 * lifetime of 0. Never lets a cache store or reuse a response that it could not before: the
 * response to a request with Authorization gets no must-revalidate (§3.5), unless it already lets
 * shared caches reuse it.
 *
 * The exception is a 304, which never states less than a second: where it states no lifetime, or 0,
 * nginx goes on with the one that it has stored.
 *
 * Also limits Expires, if present, and the fields that only some caches read: targeted
 * Cache-Control like CDN-Cache-Control (RFC 9213), Surrogate-Control, Edge-Control, and nginx's
 * X-Accel-Expires. A value that caches may read in different ways is replaced by one that forbids
 * them to store the response. In the last three fields, it stays if it ends in time even if its
 * digits are days (`1d`, `60+30`), or if it has none, if a year does.
 *
 * @param fields The fields of the response. Those named above must occur at most once each, as in
 *   `Headers`.
 * @returns The fields to send in place of those given: all of them in the same order, with a
 *   Cache-Control at the end if there was none. A 304 may get an X-Accel-Expires, too.
 *
 * @example An hour of freshness, a minute before the sunset
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { limitFreshness } from "@media-head/lifecycle";
 *
 * const until = Date.parse("2027-06-30T00:00:00Z");
 * const fields = limitFreshness([["Cache-Control", "max-age=3600"]], {
 *   until,
 *   now: until - 60_000,
 *   method: "GET",
 *   status: 200,
 *   isAuthorized: false,
 * });
 * assertEquals(fields, [
 *   ["Cache-Control", "max-age=59, must-revalidate, stale-while-revalidate=0"],
 * ]);
 * ```
 */
export function limitFreshness(fields: readonly Field[], limit: FreshnessLimit): Field[] {
  return limitFreshnessForReuse(fields, limit).fields;
}

/** Limited fields, and how long a response may be reused with them. */
export interface ReusableFields {
  /** The result of {@linkcode limitFreshness}. */
  readonly fields: Field[];
  /** The instant until which the result stays the same, in milliseconds since the epoch. */
  readonly unchangedUntil: number;
}

/** Limits freshness as {@linkcode limitFreshness} does, and says how long the result is the same. */
export function limitFreshnessForReuse(
  fields: readonly Field[],
  { until, now, method, status, isAuthorized = true }: FreshnessLimit,
): ReusableFields {
  if (until === Infinity) return { fields: [...fields], unchangedUntil: until };
  const names = fields.map(([name]) => name.toLowerCase());
  const valueOf = (name: string) => fields[names.indexOf(name)]?.[1];
  // An invalid date means that the response has already expired (§5.3).
  const expiry = parseHttpDate(valueOf("expires") ?? "", now) ?? 0;
  const date = parseHttpDate(valueOf("date") ?? "", now) ?? now;
  // Where a 304 states no lifetime, nginx goes on with the one that it has stored.
  const least = status === 304 ? 1 : 0;
  // Some caches count from Date, even if it is ahead of the clock.
  const left = Math.max(least, Math.floor((until - TRAVEL_MS - Math.max(now, date)) / 1000));
  const latest = until - TRAVEL_MS - Math.max(0, now - date); // others subtract Date from Expires
  const isSafe = method === "GET" || method === "HEAD"; // caches guess for no other method
  let longest = 0; // of all ages, in seconds
  const limit = (name: string, value: string): string => {
    const lifetime = name === "cache-control" && names.includes("expires")
      ? Math.floor((expiry - Math.max(now, date)) / 1000) // nginx does not read Date
      : isSafe && mayGuess(name, value, status)
      ? 0
      : undefined;
    const limited = name === "x-accel-expires"
      ? limitAccelExpires(value, { until, left, least })
      : limitAges(name, value, { left, least, lifetime, isAuthorized });
    longest = Math.max(longest, limited.longest);
    return limited.value;
  };
  const result = fields.map(([name, value], index): Field => {
    const key = names[index] ?? "";
    if (key === "expires") return [name, formatHttpDate(Math.min(expiry, latest))];
    return [name, isCacheControl(key) || key === "x-accel-expires" ? limit(key, value) : value];
  });
  const added = names.includes("cache-control") ? "" : limit("cache-control", "");
  if (added !== "") result.push(["Cache-Control", added]);
  // nginx reads this field first, and in Cache-Control no lifetime beside a prohibition.
  const control = result[names.indexOf("cache-control")]?.[1] ?? "";
  if (least > 0 && prohibitsReuse(control) && !names.includes("x-accel-expires")) {
    result.push(["X-Accel-Expires", String(least)]);
  }
  // An age that is counted up to Expires changes with the clock.
  if (names.includes("expires")) return { fields: result, unchangedUntil: now };
  // The values stay the same while the time left is no shorter than the longest age.
  const unchangedUntil = longest <= least ? until : until - TRAVEL_MS - longest * 1000 + 1;
  return { fields: result, unchangedUntil };
}

/** Limits X-Accel-Expires: seconds, or a time after `@`. nginx ignores any other value. */
function limitAccelExpires(
  value: string,
  { until, left, least }: { until: number; left: number; least: number },
): { value: string; longest: number } {
  const [, at = "", number] = /^(@?)(\d+)$/.exec(value) ?? [];
  if (number === undefined) {
    const age = inDays(value);
    const isKept = least === 0 && age <= left;
    return isKept ? { value, longest: age } : { value: String(least), longest: 0 };
  }
  const most = at === "" ? left : Math.floor((until - TRAVEL_MS) / 1000);
  const seconds = Math.max(least, Math.min(Number(number), most));
  return { value: at + seconds, longest: at === "" ? seconds : 0 };
}

/** Returns whether the limits depend on a field. All others stay as they are. */
export function governsFreshness(name: string): boolean {
  const key = name.toLowerCase();
  return isCacheControl(key) || key === "expires" || key === "x-accel-expires" || key === "date";
}

/** Returns whether caches that use a field may guess the freshness of the response (§4.2.2). */
function mayGuess(name: string, value: string, status: number): boolean {
  // Caches ignore a surrogate's field without a lifetime, and a targeted one without directives.
  const isUsed = name === "cache-control" || !isSurrogate(name) && value.trim() !== "";
  const directives = new Directives(value);
  // A 304 updates a stored response (§4.3.4).
  const mayBeStored = HEURISTICALLY_CACHEABLE.has(status) || status === 304 ||
    directives.isBare("public") || directives.isBare("private");
  return isUsed && mayBeStored;
}
