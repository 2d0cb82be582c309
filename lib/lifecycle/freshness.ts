/** Limits on caching, so that no cached response outlives the phase in which it was sent. */

import { formatHttpDate, parseHttpDate } from "../http/http_date.ts";
import type { Field } from "../http/outcome.ts";

/**
 * A Cache-Control directive (RFC 9111 §5.2): a name and an optional token or quoted string. A
 * semicolon ends it, because nginx reads two directives in `public;max-age=3600`.
 */
const DIRECTIVE = /([^\s,;="]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,;"]*))?/g;

/**
 * Milliseconds allowed for a response to reach a cache. Few caches correct for this delay (RFC 9111
 * §4.2.3). Most count the age from receipt, and some do so in whole seconds.
 */
const TRAVEL = 1000;

/** The limit on a response's freshness. Times are milliseconds since the epoch. */
export interface FreshnessLimit {
  /** When the response's phase ends; `Infinity` for never. */
  readonly until: number;
  /** When the response is sent. */
  readonly now: number;
}

/** The fields to send instead. */
export interface LimitedFreshness {
  /** All fields in the same order, with a Cache-Control at the end if there was none. */
  readonly fields: Field[];
  /** Until when these values stay the same, in milliseconds since the epoch. */
  readonly unchangedUntil: number;
}

/**
 * Limits a response's freshness (RFC 9111 §4.2) to the time left in the phase, for shared and
 * private caches alike. While a phase change is pending, caches must not serve the response stale
 * (§4.2.4), nor guess its freshness (§4.2.2): a response without explicit freshness gets none.
 *
 * Also limits Expires, where it is present, and the fields for some caches only: targeted
 * Cache-Control like CDN-Cache-Control (RFC 9213), Surrogate-Control, and nginx's X-Accel-Expires.
 *
 * @param fields The fields of the response, with those named above at most once each, as `Headers`
 *   lists them.
 *
 * @example An hour of freshness, a minute before the sunset
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { limitFreshness } from "@media-head/lifecycle";
 *
 * const until = Date.parse("2027-06-30T00:00:00Z");
 * const { fields } = limitFreshness([["Cache-Control", "max-age=3600"]], {
 *   until,
 *   now: until - 60_000,
 * });
 * assertEquals(fields, [
 *   ["Cache-Control", "max-age=59, must-revalidate, stale-while-revalidate=0"],
 * ]);
 * ```
 */
export function limitFreshness(
  fields: readonly Field[],
  { until, now }: FreshnessLimit,
): LimitedFreshness {
  if (until === Infinity) return { fields: [...fields], unchangedUntil: until };
  const left = Math.max(0, Math.floor((until - TRAVEL - now) / 1000));
  const names = fields.map(([name]) => name.toLowerCase());
  const valueOf = (name: string) => fields[names.indexOf(name)]?.[1];
  // An invalid date means that the response has already expired (§5.3).
  const expiry = parseHttpDate(valueOf("expires") ?? "", now) ?? 0;
  const date = parseHttpDate(valueOf("date") ?? "", now) ?? now;
  const lifetime = Math.floor((expiry - date) / 1000);
  let longest = 0; // of all ages, in seconds
  const limit = (value: string, lifetime: number): string => {
    const limited = limitAges(value, left, lifetime);
    longest = Math.max(longest, limited.longest);
    return limited.value;
  };
  const result = fields.map((field, index): Field => {
    const [name, value] = field;
    switch (names[index]) {
      case "cache-control":
        return [name, limit(value, lifetime)];
      case "expires":
        return [name, formatHttpDate(Math.min(expiry, until - TRAVEL))];
      case "x-accel-expires": {
        const [, at, seconds] = /^(?:@(\d+)|(\d+))$/.exec(value) ?? []; // nginx ignores any other
        if (at) return [name, `@${Math.min(Number(at), Math.floor((until - TRAVEL) / 1000))}`];
        if (seconds) longest = Math.max(longest, Math.min(Number(seconds), left));
        return [name, seconds ? String(Math.min(Number(seconds), left)) : value];
      }
    }
    return isCacheControl(names[index]) ? [name, limit(value, 0)] : field;
  });
  if (!names.includes("cache-control")) result.push(["Cache-Control", limit("", lifetime)]);
  // The values stay the same for as long as at least the longest age is left.
  const unchangedUntil = longest === 0 ? until : until - TRAVEL - longest * 1000 + 1;
  return { fields: result, unchangedUntil };
}

/** Whether a field, by its name in lower case, is Cache-Control for all caches or some. */
export function isCacheControl(name = ""): boolean {
  return name.endsWith("cache-control") || name === "surrogate-control";
}

/** Whether a field, by its name in lower case, tells any cache how long it may keep a response. */
export function isForCaches(name: string): boolean {
  return isCacheControl(name) || name === "expires" || name === "x-accel-expires";
}

/**
 * Limits each age in a Cache-Control value to the seconds left.
 *
 * @param lifetime The freshness given by Expires, in seconds, for a value without max-age.
 * @returns The value to send, and the longest age in it, in seconds.
 */
export function limitAges(
  value: string,
  left: number,
  lifetime: number,
): { value: string; longest: number } {
  const limited: string[] = [];
  /**
   * Each directive, and whether all its occurrences lack an argument, since caches use any of them.
   */
  const stated = new Map<string, boolean>();
  let longest = 0;
  const addAge = (name: string, seconds: number) => {
    const age = Math.max(0, Math.min(seconds, left));
    longest = Math.max(longest, age);
    limited.push(`${name}=${age}`);
  };
  for (const [text, directive = "", argument] of value.matchAll(DIRECTIVE)) {
    const name = directive.toLowerCase();
    stated.set(name, argument === undefined && stated.get(name) !== false);
    if (name === "max-age" || name === "s-maxage") addAge(name, secondsOf(argument));
    else if (name !== "stale-while-revalidate" && name !== "stale-if-error") limited.push(text);
  }
  // A cache that knows must-understand ignores the no-store beside it (§5.2.2.3).
  const isNeverReused = stated.get("no-cache") ||
    stated.get("no-store") && !stated.get("must-understand");
  if (!isNeverReused) {
    // Also beside s-maxage, which browsers ignore.
    if (!stated.has("max-age")) addAge("max-age", lifetime);
    if (!stated.has("must-revalidate")) limited.push("must-revalidate");
    // For Varnish, which ignores must-revalidate.
    limited.push("stale-while-revalidate=0");
  }
  return { value: limited.join(", "), longest };
}

/**
 * Parses a number of seconds, quoted or not, without the time for serving stale that
 * Surrogate-Control may add (`60+30`). An invalid number makes a response stale (§4.2.1).
 */
function secondsOf(value = ""): number {
  const seconds = /^"?(\d+)(?:\+\d+)?"?$/.exec(value)?.[1];
  return seconds === undefined ? 0 : Number(seconds);
}
