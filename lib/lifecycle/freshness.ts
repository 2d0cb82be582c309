/**
 * Limits on caching: a cached response must not outlive the phase in which it was sent.
 */

import { formatHttpDate, parseHttpDate } from "../http/http_date.ts";

/** A Cache-Control directive (RFC 9111 §5.2): a name and an optional token or quoted string. */
const DIRECTIVE = /([^\s,="]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?/g;

/**
 * Milliseconds allowed for a response to reach a cache. Few caches correct for the delay (RFC 9111
 * §4.2.3): they count age from receipt, some in whole seconds.
 */
const TRAVEL = 1000;

/** The limit on a response's freshness. Times are milliseconds since the epoch. */
export interface FreshnessLimit {
  /** When the response's phase ends; `Infinity` for never. */
  readonly until: number;
  /** When the response is sent. */
  readonly now: number;
}

/** The Cache-Control to send instead. */
export interface LimitedFreshness {
  readonly cacheControl: string;
  /** How long this value stays the same, in milliseconds since the epoch. */
  readonly unchangedUntil: number;
}

/**
 * Limits a response's freshness (RFC 9111 §4.2) to the time left in the phase, for shared and
 * private caches alike. While a phase change is pending, it also rules out serving stale (§4.2.4)
 * and heuristic freshness (§4.2.2): a response without explicit freshness gets none.
 * CDN-Cache-Control (RFC 9213) and Expires are limited where present.
 *
 * @param headers Modified in place.
 *
 * @example An hour of freshness, a minute before the sunset
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { limitFreshness } from "@media-head/media-head/lifecycle";
 *
 * const until = Date.parse("2027-06-30T00:00:00Z");
 * const headers = new Headers({ "Cache-Control": "max-age=3600" });
 * limitFreshness(headers, { until, now: until - 60_000 });
 * assertEquals(
 *   headers.get("Cache-Control"),
 *   "max-age=59, must-revalidate, stale-while-revalidate=0",
 * );
 * ```
 */
export function limitFreshness(headers: Headers, limit: FreshnessLimit): void {
  const { until, now } = limit;
  if (until === Infinity) return;
  const expires = headers.get("expires");
  // An invalid date means that the response has already expired (§5.3).
  const expiry = expires === null ? 0 : parseHttpDate(expires, now) ?? 0;
  const date = parseHttpDate(headers.get("date") ?? "", now) ?? now;
  const stated = headers.get("cache-control") ?? "";
  const { cacheControl } = limitCacheControl(stated, limit, Math.floor((expiry - date) / 1000));
  headers.set("cache-control", cacheControl);
  if (expires !== null) headers.set("expires", formatHttpDate(Math.min(expiry, until - TRAVEL)));
  const targeted = headers.get("cdn-cache-control");
  if (targeted !== null) {
    headers.set("cdn-cache-control", limitCacheControl(targeted, limit).cacheControl);
  }
}

/**
 * Limits a Cache-Control value, as {@linkcode limitFreshness} does.
 *
 * @param stated The value; empty if there is none.
 * @param lifetime The freshness given by Expires, in seconds, for a value without max-age.
 */
export function limitCacheControl(
  stated: string,
  { until, now }: FreshnessLimit,
  lifetime = 0,
): LimitedFreshness {
  if (until === Infinity) return { cacheControl: stated, unchangedUntil: until };
  const left = Math.max(0, Math.floor((until - TRAVEL - now) / 1000));
  const known = parse(stated);
  const isWhole = lifetime === 0 && left >= known.whole.longest;
  const { cacheControl, longest } = isWhole ? known.whole : limitAges(known, left, lifetime);
  return {
    cacheControl,
    // The value stays the same for as long as at least its longest age is left.
    unchangedUntil: longest === 0 ? until : until - TRAVEL - longest * 1000 + 1,
  };
}

/** Limits each age to the seconds left. `lifetime` is the freshness given by Expires, in seconds. */
function limitAges(
  { directives, isNeverReused }: Directives,
  left: number,
  lifetime: number,
): LimitedAges {
  let longest = 0;
  const age = (name: string, seconds: number) => {
    const limited = Math.max(0, Math.min(seconds, left));
    longest = Math.max(longest, limited);
    return `${name}=${limited}`;
  };
  const states = (name: string) => directives.some((directive) => directive.name === name);
  const limited = directives
    .filter(({ name }) => name !== "stale-while-revalidate" && name !== "stale-if-error")
    .map(({ text, name, value }) => isAge(name) ? age(name, secondsOf(value)) : text);
  if (!isNeverReused) {
    // Also beside s-maxage, which browsers ignore.
    if (!states("max-age")) limited.push(age("max-age", lifetime));
    if (!states("must-revalidate")) limited.push("must-revalidate");
    // For Varnish, which ignores must-revalidate.
    limited.push("stale-while-revalidate=0");
  }
  return { cacheControl: limited.join(", "), longest };
}

function isAge(name: string): boolean {
  return name === "max-age" || name === "s-maxage";
}

interface Directive {
  readonly text: string;
  readonly name: string;
  readonly value: string | undefined;
}

interface Directives {
  readonly directives: readonly Directive[];
  readonly isNeverReused: boolean;
}

interface LimitedAges {
  readonly cacheControl: string;
  /** The longest age in seconds. */
  readonly longest: number;
}

interface CacheControl extends Directives {
  /** The value when the time left does not shorten any age. */
  readonly whole: LimitedAges;
}

/** Servers send few distinct values, over and over. Emptied when full. */
const parsed = new Map<string, CacheControl>();
const MAX_PARSED = 64;

function parse(cacheControl: string): CacheControl {
  let known = parsed.get(cacheControl);
  if (known === undefined) {
    const directives = [...cacheControl.matchAll(DIRECTIVE)]
      .map(([text, name = "", value]) => ({ text, name: name.toLowerCase(), value }));
    // When a directive is repeated, some caches use the first, others the last.
    const states = (name: string) => {
      const stated = directives.filter((directive) => directive.name === name);
      return stated.length > 0 && stated.every(({ value }) => value === undefined);
    };
    // A cache that knows must-understand ignores the no-store beside it (§5.2.2.3).
    const isNeverReused = states("no-cache") || states("no-store") && !states("must-understand");
    if (parsed.size >= MAX_PARSED) parsed.clear();
    const whole = limitAges({ directives, isNeverReused }, Infinity, 0);
    parsed.set(cacheControl, known = { directives, isNeverReused, whole });
  }
  return known;
}

/** Parses a number of seconds, quoted or not; an invalid one makes a response stale (§4.2.1). */
function secondsOf(value = ""): number {
  const seconds = /^"?(\d+)"?$/.exec(value)?.[1];
  return seconds === undefined ? 0 : Number(seconds);
}
