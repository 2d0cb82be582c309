/** Cache-Control (RFC 9111 §5.2), and the fields with its syntax that only some caches read. */

import { HTTP_TOKEN } from "../http/http_token.ts";

/** Matches a member of a list, including commas in its quoted strings (RFC 9110 §5.6.1). */
const MEMBER = /(?:"(?:[^"\\]|\\[^]?)*"?|[^",])+/g;

/** Matches a member that is a directive, or empty, as it may be (RFC 9110 §5.6.1.2). */
const DIRECTIVE = new RegExp(
  `^[\t ]*(?:(${HTTP_TOKEN})(?:=(${HTTP_TOKEN}|"(?:[^"\\\\]|\\\\[^])*"))?[\t ]*)?$`,
);

/** Directives that let a cache reuse a response for a time. The last two are of Edge-Control. */
const AGES = "max-age|s-maxage|stale-while-revalidate|stale-if-error|cache-maxage|downstream-ttl";

/** Matches an age in seconds, the only form that all caches read alike. No tab follows, for nginx. */
const AGE = new RegExp(`(${AGES})=(\\d+)(?= *(?:,|$))`, "gi");

/** Matches any age once those are taken out. nginx finds one in any part of a value. */
const ODD_AGE = new RegExp(`(?:${AGES})[^,]*`, "gi");

/** Matches an age in any form that is in use: in quotes, or with a unit, as in Edge-Control. */
const SECONDS = new RegExp(
  String.raw`(?<![^\s,;"])(${AGES})\s*=\s*"?(\d+(?:\.\d*)?)([smhd]?)`,
  "gi",
);

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

  get names(): string[] {
    return [...this.#stated.keys()];
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

/** Returns whether a value forbids reuse in any part of it, where nginx looks. */
export function prohibitsReuse(value: string): boolean {
  return /no-store|no-cache|private|bypass-cache/i.test(value);
}

/** Returns the longest times, in seconds, for which a value lets caches reuse a response. */
export function longestAges(value: string): { fresh: number; stale: number } {
  const longest = { fresh: 0, stale: 0 };
  for (const [, name = "", number, unit = ""] of value.matchAll(SECONDS)) {
    const kind = /^stale/i.test(name) ? "stale" : "fresh";
    longest[kind] = Math.max(longest[kind], Number(number) * (UNITS[unit.toLowerCase()] ?? 1));
  }
  return longest;
}

/** Returns the seconds of what caches may read in different ways; 0 if they read a value alike. */
export function oddAge(value: string): number {
  const odd = value.replace(AGE, "").match(ODD_AGE);
  if (odd !== null) return Math.max(...odd.map(inDays));
  return (value.match(MEMBER) ?? []).every((text) => DIRECTIVE.test(text)) ? 0 : inDays("");
}

/**
 * Returns the seconds of an age that is no plain number of them. To be on the safe side, its digits
 * count as days, like those of `1d` and `60+30`, and what cannot be read at all as a year.
 */
export function inDays(age: string): number {
  const days = (age.match(/\d+/g) ?? []).reduce((sum, number) => sum + Number(number), 0);
  return (days || 365) * 86_400;
}

/**
 * Limits each age in a value to the time left, and keeps caches from serving the response stale.
 * Never lets a cache store or reuse a response that it could not before, except for `least`. A value
 * that caches may read in different ways is replaced, unless it is a surrogate's and ends in time.
 *
 * @param name The name of the field, in lower case.
 * @param left The time left, in seconds.
 * @param least The shortest lifetime that may be stated, in seconds.
 * @param lifetime The lifetime that caches use without max-age, in seconds; `undefined` if none.
 * @param isAuthorized Whether the request has Authorization.
 * @returns The value to send, and the longest age in it, in seconds.
 */
export function limitAges(
  name: string,
  given: string,
  { left, least, lifetime, isAuthorized }: {
    left: number;
    least: number;
    lifetime: number | undefined;
    isAuthorized: boolean;
  },
): { value: string; longest: number } {
  const odd = oddAge(given);
  if (odd > 0) {
    const { fresh, stale } = longestAges(given);
    const end = Math.max(odd, fresh) + Math.max(stale, VARNISH_GRACE_SECONDS);
    if (isSurrogate(name) && end <= left) return { value: given, longest: end };
  }
  const replacement = least === 0 || prohibitsReuse(given) ? "no-store" : `max-age=${least}`;
  const value = odd > 0 ? replacement : given;
  const { fresh, stale } = longestAges(value);
  const directives = new Directives(value);
  const hasMaxAge = directives.hasSeconds("max-age");
  const hasGrace = directives.hasSeconds("stale-while-revalidate");
  const end = Math.max(fresh, least) + (hasGrace ? stale : Math.max(stale, VARNISH_GRACE_SECONDS));
  const isBounded = hasMaxAge && (hasGrace || directives.hasSeconds("stale-if-error"));
  if (isBounded && end <= left && !directives.isBare("no-cache")) {
    return { value: limitSeconds(value, left, least, stale), longest: end };
  }

  const limited = limitSeconds(value, left, least);
  const longest = Math.max(Math.min(fresh, left), least);
  const isReusable = lifetime !== undefined || /max-?age/i.test(value);
  // Squid does not heed no-store and no-cache where they update what is stored.
  const needsAges = least > 0 || !directives.forbidsReuse();
  if (!isReusable || !needsAges && directives.isBare("no-store")) {
    return { value: limited, longest };
  }
  const added: string[] = [];
  // Add max-age even beside s-maxage, because browsers ignore s-maxage.
  const age = Math.max(least, Math.min(lifetime ?? 0, left));
  const addsAge = needsAges && !hasMaxAge && lifetime !== undefined;
  if (addsAge) added.push(`max-age=${age}`);
  // Any of the three lets a shared cache reuse the response to an authorized request (§3.5).
  const isStrict = directives.isBare("must-revalidate");
  const mayBeShared = !isAuthorized || isStrict || directives.isBare("public") ||
    directives.hasSeconds("s-maxage");
  // Without it, Apache serves what it has stored in place of a 503, even beside no-cache.
  if (mayBeShared && !isStrict) added.push("must-revalidate");
  // Varnish ignores must-revalidate.
  if (needsAges && !hasGrace) added.push("stale-while-revalidate=0");
  return {
    value: [limited, ...added].filter((part) => part.trim() !== "").join(", "),
    longest: addsAge ? Math.max(longest, age) : longest,
  };
}

/** Limits each age in a value that caches read alike. */
export function limitSeconds(value: string, left: number, least = 0, leftStale = 0): string {
  return value.replace(AGE, (text, name, number) => {
    const [from, to] = /^stale/i.test(name) ? [0, leftStale] : [least, left];
    const seconds = Math.min(Math.max(Number(number), from), to);
    return seconds === Number(number) ? text : `${name}=${seconds}`;
  });
}
