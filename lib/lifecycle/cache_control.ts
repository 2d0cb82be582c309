/** Cache-Control (RFC 9111 §5.2), and the fields with its syntax that only some caches read. */

import { isUnclosed } from "../http/quoted_string.ts";

/** Matches a member of a list, including commas in its quoted strings (RFC 9110 §5.6.1). */
const MEMBER = /(?:"(?:[^"\\]|\\[^]?)*"?|[^",])+/g;

/**
 * Matches a directive: a name, with or without an argument (a token or a quoted string). Around it,
 * only tabs and spaces are whitespace (RFC 9110 §5.6.3).
 */
const DIRECTIVE = /^[\t ]*([^\s;="]+)(?:=("(?:[^"\\]|\\[^])*"|[^\s;"]*))?[\t ]*$/;

/** Directives that let a cache reuse a response for a time. The last two are of Edge-Control. */
const AGES = "max-age|s-maxage|stale-while-revalidate|stale-if-error|cache-maxage|downstream-ttl";

/**
 * Matches an age wherever some cache may read one. nginx reads it after a semicolon and within
 * quotes, Edge-Control has units, and Surrogate-Control adds the time for serving stale (`60+30`).
 */
const SECONDS = new RegExp(
  String.raw`(?<![^\s,;"])(${AGES})(\s*=\s*"?)(\d+(?:\.\d*)?)([smhd]?)(\+\d+)?`,
  "gi",
);

/** Matches a directive against caches, wherever some cache may read one. */
const RESTRICTION = /(?<!!)(?:no-store|no-cache|private|proxy-revalidate|bypass-cache)/g;

/** Matches a lifetime, and its number and unit if it has them. */
const LIFETIME = /(?:max-?age|downstream-ttl)(?:\s*=\s*(\d+(?:\.\d*)?)([smhd]?)(?!\s*[^\s,;+]))?/gi;

/** Seconds in each unit of Edge-Control. */
const UNITS: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400 };

/** Seconds for which Varnish serves a stale response unless the response limits them. */
const VARNISH_GRACE_SECONDS = 10;

/** The directives of a value, as read by caches that split it at commas only. */
export class Directives {
  readonly #stated = new Map<string, string | undefined>();

  constructor(value: string) {
    for (const [member] of value.matchAll(MEMBER)) {
      const [, name = "", argument] = DIRECTIVE.exec(member) ?? [];
      const key = name.toLowerCase();
      this.#stated.set(key, argument ?? this.#stated.get(key));
    }
  }

  has(name: string): boolean {
    return this.#stated.has(name);
  }

  /** Returns whether a directive occurs, and never with an argument: caches use any occurrence. */
  isBare(name: string): boolean {
    return this.#stated.has(name) && this.#stated.get(name) === undefined;
  }

  hasSeconds(name: string): boolean {
    return /^\d+$/.test(this.#stated.get(name) ?? "");
  }

  /** Returns whether caches must not reuse the response without revalidation. */
  forbidsReuse(): boolean {
    // A cache that knows must-understand ignores the no-store beside it (§5.2.2.3).
    return this.isBare("no-cache") || this.isBare("no-store") && !this.has("must-understand");
  }
}

/** Returns whether a field, named in lower case, is Cache-Control for all caches or for some. */
export function isCacheControl(name: string): boolean {
  return name.endsWith("cache-control") || isSurrogate(name);
}

/** Returns whether a field gives way to Cache-Control if it has no lifetime. */
export function isSurrogate(name: string): boolean {
  return name === "surrogate-control" || name === "edge-control";
}

/**
 * Returns the directives in a value that only keep caches from storing or reusing a response,
 * without their arguments. nginx and Varnish find them anywhere in it. The `!` of Edge-Control
 * takes one back.
 */
export function restrictionsOf(value: string): string[] {
  return [...new Set(Array.from(value.toLowerCase().matchAll(RESTRICTION), ([word]) => word))];
}

/**
 * Returns the shortest lifetime in a value, in whole seconds; `Infinity` if it states none. One that
 * is no number counts as 0 (RFC 9111 §4.2.1).
 */
export function shortestAge(value: string): number {
  const ages = Array.from(
    value.matchAll(LIFETIME),
    ([, number = "0", unit = ""]) => Math.floor(Number(number) * (UNITS[unit.toLowerCase()] ?? 1)),
  );
  return Math.min(...ages);
}

/** Adds directives to a value, after its own if caches would read them there. */
export function withDirectives(value: string, added: readonly string[]): string {
  const own = value.trim() === "" ? [] : [value];
  return (isUnclosed(value) ? [...added, ...own] : [...own, ...added]).join(", ");
}

/** Returns the longest times, in seconds, for which a value lets caches reuse a response. */
export function longestAges(value: string): { fresh: number; stale: number } {
  const longest = { fresh: 0, stale: 0 };
  for (const [, name = "", , number, unit = ""] of value.matchAll(SECONDS)) {
    const kind = /^stale/i.test(name) ? "stale" : "fresh";
    longest[kind] = Math.max(longest[kind], Number(number) * (UNITS[unit.toLowerCase()] ?? 1));
  }
  return longest;
}

/**
 * Limits each age in a Cache-Control value to the time left, and keeps caches from serving the
 * response stale. Never lets a cache store or reuse a response that it could not before.
 *
 * @param left The time left, in seconds.
 * @param lifetime The lifetime that caches use without max-age, in seconds; `undefined` if none.
 * @param isAuthorized Whether the request has Authorization.
 * @returns The value to send, and the longest age in it, in seconds.
 */
export function limitAges(
  value: string,
  left: number,
  lifetime: number | undefined,
  isAuthorized: boolean,
): { value: string; longest: number } {
  const directives = new Directives(value);
  const hasMaxAge = directives.hasSeconds("max-age");
  const hasGrace = directives.hasSeconds("stale-while-revalidate");
  const { fresh, stale } = longestAges(value);
  const end = fresh + (hasGrace ? stale : Math.max(stale, VARNISH_GRACE_SECONDS));
  const isBounded = hasMaxAge && (hasGrace || directives.hasSeconds("stale-if-error"));
  if (isBounded && end <= left) return { value, longest: end };

  const limited = limitSeconds(value, left);
  const longest = Math.min(fresh, left);
  const isReusable = lifetime !== undefined || /max-?age/i.test(value); // malformed or not
  if (directives.forbidsReuse() || !isReusable) return { value: limited, longest };
  const added: string[] = [];
  // Add max-age even beside s-maxage, because browsers ignore s-maxage.
  const age = /max-age/i.test(value) ? 0 : Math.max(0, Math.min(lifetime ?? 0, left));
  if (!hasMaxAge && lifetime !== undefined) added.push(`max-age=${age}`);
  // Any of the three lets a shared cache reuse the response to an authorized request (§3.5).
  const isStrict = directives.isBare("must-revalidate");
  const mayBeShared = !isAuthorized || isStrict || directives.isBare("public") ||
    directives.hasSeconds("s-maxage");
  if (mayBeShared && !isStrict) added.push("must-revalidate");
  if (!hasGrace) added.push("stale-while-revalidate=0"); // Varnish ignores must-revalidate
  return {
    value: withDirectives(limited, added),
    longest: hasMaxAge ? longest : Math.max(longest, age),
  };
}

/** Limits each age in place, so that a value malformed for some cache stays malformed. */
export function limitSeconds(value: string, left: number): string {
  return value.replace(SECONDS, (text, name, equals, number, unit, added) => {
    const limit = /^stale/i.test(name) ? 0 : left;
    const isLonger = Number(number) * (UNITS[unit.toLowerCase()] ?? 1) > limit;
    if (!isLonger && !added) return text;
    const seconds = isLonger ? `${limit}${unit && "s"}` : number + unit;
    return `${name}${equals}${seconds}${added ? "+0" : ""}`;
  });
}
