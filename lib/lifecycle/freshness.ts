/**
 * Caches and phases: what a cache keeps must not be used beyond the phase it was sent in.
 */

import { formatHttpDate, parseHttpDate } from "../http/http_date.ts";

/** One directive of Cache-Control (RFC 9111 §5.2): a name, and perhaps a token or a quoted string. */
const DIRECTIVE = /([^\s,="]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?/g;

/**
 * Milliseconds that a response may take to a cache. Few caches make up for that (RFC 9111 §4.2.3):
 * they count from when they receive it, and some in whole seconds.
 */
const TRAVEL = 1000;

/** Milliseconds since the epoch. */
export interface FreshnessLimit {
  /** When the phase that the response belongs to ends; `Infinity` for never. */
  readonly until: number;
  /** When the response is sent. */
  readonly now: number;
}

/** What a response is to state instead. */
export interface LimitedFreshness {
  readonly cacheControl: string;
  /** Until when the same would be stated, in milliseconds since the epoch. */
  readonly unchangedUntil: number;
}

/**
 * Limits the freshness that a response states (RFC 9111 §4.2) to what is left of the phase, for
 * shared and private caches alike. While a change lies ahead, stale use is ruled out too (§4.2.4),
 * and so are heuristics (§4.2.2): what states no freshness gets none. CDN-Cache-Control (RFC 9213)
 * and Expires, for caches that go by them, are limited where they are stated.
 *
 * @param headers Changed in place.
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
  // What is no date means that the response has expired (§5.3).
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
 * The same for the value of Cache-Control alone.
 *
 * @param stated The value; empty without one.
 * @param lifetime Seconds of freshness that the response states by other means than max-age.
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
    // The same is stated as long as at least so much is left.
    unchangedUntil: longest === 0 ? until : until - TRAVEL - longest * 1000 + 1,
  };
}

/** Seconds left; and of freshness that is stated by other means than max-age. */
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
    // Besides s-maxage too, which says nothing to browsers.
    if (!states("max-age")) limited.push(age("max-age", lifetime));
    if (!states("must-revalidate")) limited.push("must-revalidate");
    // Varnish goes by this one, and by must-revalidate not at all.
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
  /** Seconds of the longest age stated. */
  readonly longest: number;
}

interface CacheControl extends Directives {
  /** With as much left as it states. */
  readonly whole: LimitedAges;
}

/** Servers state few different things, and the same again and again; should they not, it is emptied. */
const parsed = new Map<string, CacheControl>();
const MAX_PARSED = 64;

function parse(cacheControl: string): CacheControl {
  let known = parsed.get(cacheControl);
  if (known === undefined) {
    const directives = [...cacheControl.matchAll(DIRECTIVE)]
      .map(([text, name = "", value]) => ({ text, name: name.toLowerCase(), value }));
    // Of a directive that is stated twice, caches take the first or the last.
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

/** A number of seconds, quoted or not; none that can be read makes a response stale (§4.2.1). */
function secondsOf(value = ""): number {
  const seconds = /^"?(\d+)"?$/.exec(value)?.[1];
  return seconds === undefined ? 0 : Number(seconds);
}
