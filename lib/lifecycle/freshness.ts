/**
 * Caches and phases: what a cache keeps must not be used beyond the phase it was sent in.
 */

import { parseHttpDate } from "../http/http_date.ts";

/** One directive of Cache-Control (RFC 9111 §5.2): a name, and perhaps a token or a quoted string. */
const DIRECTIVE = /([^\s,="]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^\s,"]*))?/g;

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
  if (until === Infinity) return until;
  const stated = [...(headers.get("cache-control") ?? "").matchAll(DIRECTIVE)]
    .map(([text, name = "", value]) => ({ text, name: name.toLowerCase(), value }));
  const states = (name: string) => stated.some((directive) => directive.name === name);
  const isNeverReused = states("no-store") ||
    stated.some(({ name, value }) => name === "no-cache" && value === undefined);
  if (isNeverReused) return until;

  const left = Math.floor((until - now) / 1000);
  let longest = 0;
  const age = (name: string, seconds: number) => {
    const limited = Math.max(0, Math.min(seconds, left));
    longest = Math.max(longest, limited);
    return `${name}=${limited}`;
  };
  const limited = stated
    .filter(({ name }) => name !== "stale-while-revalidate" && name !== "stale-if-error")
    .map(({ text, name, value }) =>
      name === "max-age" || name === "s-maxage" ? age(name, secondsOf(value)) : text
    );
  if (!states("max-age") && !states("s-maxage")) {
    const expires = parseHttpDate(headers.get("expires") ?? "", now);
    limited.push(age("max-age", expires === undefined ? 0 : Math.floor((expires - now) / 1000)));
  }
  if (!states("must-revalidate")) limited.push("must-revalidate");
  headers.set("cache-control", limited.join(", "));
  headers.delete("expires"); // max-age overrules it, but not in a cache of HTTP/1.0
  // The same is stated as long as at least so much is left.
  return Math.min(until, until - longest * 1000 + 1);
}

/** A number of seconds, quoted or not; none that can be read makes a response stale (§4.2.1). */
function secondsOf(value = ""): number {
  const seconds = /^"?(\d+)"?$/.exec(value)?.[1];
  return seconds === undefined ? 0 : Number(seconds);
}
