/** What an application has said against caches, kept on the refusal that is sent for it. */

import { parseHttpDate } from "../http/http_date.ts";
import { type Field, NO_STORE } from "../http/outcome.ts";
import { Directives, isCacheControl, limitSeconds, oddAge } from "./cache_control.ts";

/** Directives against caches, which stay. */
const RESTRICTING = ["no-store", "private", "no-cache", "proxy-revalidate"];

/** Matches every directive that is understood. */
const UNDERSTOOD = new RegExp(
  `^(?:${RESTRICTING.join("|")}|max-age|s-maxage|must-revalidate|must-understand|no-transform|` +
    "public|immutable|stale-while-revalidate|stale-if-error)$",
);

/** Returns whether a field, named in lower case, says what caches may do with a response. */
export function isForCaches(name: string): boolean {
  return isCacheControl(name) || name === "expires" || name === "x-accel-expires";
}

/**
 * Adds to a refusal what the application has said against caches, so that no cache can store or
 * reuse the refusal where it could not do so with the application's own response. Whatever restricts
 * some caches restricts all of them. These are kept:
 *
 * - `no-store`, `private`, `no-cache` and `proxy-revalidate`, in Cache-Control and in each field of
 *   its kin that says one of them. With field names, as in `private="set-cookie"`, they count for
 *   everything. What is not understood counts as `no-store`.
 * - The shortest lifetime in any field, as a limit.
 * - An X-Accel-Expires of 0, or one that is not understood, as 0: nginx reads it first.
 * - Vary.
 *
 * @param refused The fields of the refusal. One of them is Cache-Control.
 * @param said The fields that the application has set. Each name occurs at most once.
 * @param now Milliseconds since the epoch.
 * @returns The fields to set, in place of all that are for caches.
 */
export function keepRestrictions(
  refused: readonly Field[],
  said: readonly Field[],
  now: number,
): Field[] {
  const own = new Map(said.map(([name, value]) => [name.toLowerCase(), value]));
  const controls = [...own].filter(([key]) => isCacheControl(key));
  const words = [...new Set(controls.flatMap(([, value]) => restrictionsOf(value)))];
  const left = Math.min(...[...own.keys()].map((key) => lifetimeOf(key, own, now)));
  const isRestricted = words.length > 0 || left !== Infinity;
  // This also permits (RFC 9111 §3.5), so it stays only if every cache has read it.
  const isStrict = controls.length === 1 &&
    new Directives(own.get("cache-control") ?? "").isBare("must-revalidate");
  const fields = refused.flatMap(([name, value]): Field[] => {
    const key = name.toLowerCase();
    if (key === "cache-control" && isStrict) {
      return [[name, restrict(value, [...words, "must-revalidate"], left)]];
    }
    if (isCacheControl(key) && isRestricted) return [[name, restrict(value, words, left)]];
    if (key === "vary") return [[name, [own.get(key) ?? [], value].flat().join(", ")]];
    return isForCaches(key) && isRestricted ? [] : [[name, value]]; // caches use Cache-Control
  });
  const names = fields.map(([name]) => name.toLowerCase());
  const [, stated = ""] = fields[names.indexOf("cache-control")] ?? [];
  for (const [name, value] of said) {
    const key = name.toLowerCase();
    if (isCacheControl(key) && restrictionsOf(value).length > 0 && !names.includes(key)) {
      fields.push([name, stated]);
    }
    if (key === "x-accel-expires" && lifetimeOf(key, own, now) === 0) fields.push([name, "0"]);
  }
  return fields;
}

/** Returns the directives against caches in a value of Cache-Control or its kin. */
function restrictionsOf(value: string): string[] {
  const directives = new Directives(value);
  const isUnderstood = oddAge(value) === 0 &&
    directives.names.every((name) => UNDERSTOOD.test(name));
  return isUnderstood ? RESTRICTING.filter((name) => directives.has(name)) : ["no-store"];
}

/** Adds directives to a value of Cache-Control or its kin, and limits its lifetimes. */
function restrict(value: string, words: readonly string[], left: number): string {
  if (words.includes("no-store") || oddAge(value) > 0) {
    return [NO_STORE[1], ...words.filter((word) => word !== "no-store")].join(", ");
  }
  const limited = left === Infinity ? value : limitSeconds(value, left);
  const directives = new Directives(limited);
  const isStorable = !directives.has("no-store");
  const age = directives.hasSeconds("max-age") ? [] : [`max-age=${left}`];
  // Varnish serves stale unless it is told a time.
  const ages = left !== Infinity && isStorable ? [...age, "stale-while-revalidate=0"] : [];
  return [limited, ...words, ...ages].filter(Boolean).join(", ");
}

/** Returns the shortest lifetime that a field states, in whole seconds; `Infinity` if it states none. */
function lifetimeOf(key: string, fields: ReadonlyMap<string, string>, now: number): number {
  const value = fields.get(key) ?? "";
  const untilEnd = (end: number, start = now) =>
    Math.max(0, Math.floor((end - Math.max(now, start)) / 1000));
  if (isCacheControl(key)) {
    const ages = value.matchAll(/max-?age=(\d+)/gi); // all of them are, if it is understood
    return Math.min(...Array.from(ages, ([, seconds]) => Number(seconds)));
  }
  if (key === "expires") {
    // An invalid date means that the response has already expired (RFC 9111 §5.3).
    return untilEnd(parseHttpDate(value, now) ?? 0, parseHttpDate(fields.get("date") ?? "", now));
  }
  if (key !== "x-accel-expires") return Infinity;
  const [, at, seconds] = /^(?:@(\d+)|(\d+))$/.exec(value) ?? [];
  return at === undefined ? Number(seconds ?? 0) : untilEnd(Number(at) * 1000);
}
