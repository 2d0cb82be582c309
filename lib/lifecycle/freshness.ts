/**
 * Caches and phases: what a cache keeps must not be used beyond the phase it was sent in.
 */

import { parseHttpDate } from "../http/http_date.ts";
import { RecentMap } from "../recent_map.ts";

/** One directive of Cache-Control (RFC 9111 §5.2): a name, and perhaps a token or a quoted string. */
const DIRECTIVE = /([^\s,="]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?/g;

/** Milliseconds since the epoch. */
export interface FreshnessLimit {
  /** When the phase that the response belongs to ends; `Infinity` for never. */
  readonly until: number;
  readonly now: number;
}

/** What a response is to state instead. */
export interface LimitedFreshness {
  readonly cacheControl: string;
  /** Whether freshness is stated, and limited. */
  readonly isLimited: boolean;
  /** Until when the same would be stated, in milliseconds since the epoch. */
  readonly unchangedUntil: number;
}

/**
 * Limits the freshness that a response states (RFC 9111 §4.2) to what is left of the phase. While
 * a change lies ahead, stale use is ruled out too (§4.2.4), and so are heuristics (§4.2.2): what
 * states no freshness gets none.
 *
 * @param headers Changed in place.
 * @returns Until when the same would be stated, in milliseconds since the epoch.
 */
export function limitFreshness(headers: Headers, limit: FreshnessLimit): number {
  const stated = headers.get("cache-control") ?? "";
  const limited = limitCacheControl(stated, limit, headers.get("expires"));
  if (limited.isLimited) {
    headers.set("cache-control", limited.cacheControl);
    headers.delete("expires"); // max-age overrules it, but not in a cache of HTTP/1.0
  }
  return limited.unchangedUntil;
}

/**
 * The same for the values of the fields alone.
 *
 * @param stated The value of Cache-Control; empty without one.
 * @param expires The value of Expires, if there is one.
 */
export function limitCacheControl(
  stated: string,
  { until, now }: FreshnessLimit,
  expires: string | null = null,
): LimitedFreshness {
  const unlimited = { cacheControl: stated, isLimited: false, unchangedUntil: until };
  if (until === Infinity) return unlimited;
  const { directives, isNeverReused } = parse(stated);
  if (isNeverReused) return unlimited;

  const left = Math.floor((until - now) / 1000);
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
  if (!states("max-age") && !states("s-maxage")) {
    const date = parseHttpDate(expires ?? "", now);
    limited.push(age("max-age", date === undefined ? 0 : Math.floor((date - now) / 1000)));
  }
  if (!states("must-revalidate")) limited.push("must-revalidate");
  return {
    cacheControl: limited.join(", "),
    isLimited: true,
    // The same is stated as long as at least so much is left.
    unchangedUntil: Math.min(until, until - longest * 1000 + 1),
  };
}

function isAge(name: string): boolean {
  return name === "max-age" || name === "s-maxage";
}

interface Directive {
  readonly text: string;
  readonly name: string;
  readonly value: string | undefined;
}

interface CacheControl {
  readonly directives: readonly Directive[];
  readonly isNeverReused: boolean;
}

/** Servers state few different things, and the same again and again. */
const parsed = new RecentMap<string, CacheControl>(64);

function parse(cacheControl: string): CacheControl {
  let known = parsed.get(cacheControl);
  if (known === undefined) {
    const directives = [...cacheControl.matchAll(DIRECTIVE)]
      .map(([text, name = "", value]) => ({ text, name: name.toLowerCase(), value }));
    const isNeverReused = directives.some(({ name, value }) =>
      name === "no-store" || name === "no-cache" && value === undefined
    );
    parsed.set(cacheControl, known = { directives, isNeverReused });
  }
  return known;
}

/** A number of seconds, quoted or not; none that can be read makes a response stale (§4.2.1). */
function secondsOf(value = ""): number {
  const seconds = /^"?(\d+)"?$/.exec(value)?.[1];
  return seconds === undefined ? 0 : Number(seconds);
}
