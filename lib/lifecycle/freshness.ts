/**
 * Caches and phases: what a cache keeps must not be used beyond the phase it was sent in.
 */

import { parseHttpDate } from "../http/http_date.ts";

const AGE = /\b(max-age|s-maxage)\s*=\s*"?(\d+)"?/gi;
const STALE = /,?\s*\bstale-(?:while-revalidate|if-error)\s*=\s*"?\d+"?/gi;
const NEVER_REUSED = /\bno-store\b|\bno-cache\b(?!\s*=)/i;

/** Milliseconds since the epoch. */
export interface FreshnessLimit {
  /** When the phase that the response belongs to ends; `Infinity` for never. */
  readonly until: number;
  readonly now: number;
}

/**
 * Limits the freshness that a response states (RFC 9111 §4.2) to what is left of the phase. While
 * a change lies ahead, stale use is ruled out too (§4.2.4), and so are heuristics (§4.2.2): what
 * states no freshness gets none.
 *
 * @param headers Changed in place.
 * @returns Until when the same would be stated, in milliseconds since the epoch.
 */
export function limitFreshness(headers: Headers, { until, now }: FreshnessLimit): number {
  const stated = headers.get("cache-control") ?? "";
  if (until === Infinity || NEVER_REUSED.test(stated)) return until;

  const left = Math.floor((until - now) / 1000);
  let longest = -1;
  const limit = (seconds: number) => {
    const age = Math.max(0, Math.min(seconds, left));
    longest = Math.max(longest, age);
    return age;
  };
  let limited = stated.replaceAll(STALE, "")
    .replaceAll(AGE, (_, name, seconds) => `${name}=${limit(Number(seconds))}`);
  if (longest < 0) {
    const expires = parseHttpDate(headers.get("expires") ?? "", now);
    const age = limit(expires === undefined ? 0 : Math.floor((expires - now) / 1000));
    limited = [limited, `max-age=${age}`].filter((part) => part !== "").join(", ");
  }
  headers.delete("expires"); // overruled by max-age, but not for a cache of HTTP/1.0
  headers.set(
    "cache-control",
    /\bmust-revalidate\b/i.test(limited) ? limited : `${limited}, must-revalidate`,
  );
  // The same is stated as long as at least so much is left.
  return Math.min(until, until - longest * 1000 + 1);
}
