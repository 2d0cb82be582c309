/** Inspection of responses: their announcements, and the faults in them. */

import { formatHttpDate, parseHttpDate } from "../../http/http_date.ts";
import { parseLinks } from "../../http/link.ts";
import { Directives, isCacheControl, longestAges } from "../cache_control.ts";
import { HEURISTICALLY_CACHEABLE } from "../freshness.ts";
import { LAST_INSTANT, readInstant } from "../instant.ts";
import type { Phase } from "../policy.ts";

/** A fault in the announcement of a retirement. */
export interface Fault {
  /** The fault's name, for programs: one of those in README. */
  readonly name: string;
  /** The section of the standard that it violates, like "RFC 9745 §2.1". */
  readonly section: string;
  /** Says what is wrong, with the value, and what is expected. */
  readonly message: string;
}

/** The phase that a response announces, or `none` if it announces nothing. */
export type State = Phase | "none";

/** The announcement of a response. Instants are milliseconds since the epoch, parsed leniently. */
export interface Inspection {
  /** The state. It follows from status and fields alone, so a HEAD is enough. */
  readonly state: State;
  /** When the deprecation begins or began. */
  readonly deprecatedAt: number | undefined;
  /** When the endpoint is or was removed. */
  readonly sunsetAt: number | undefined;
  /** When a brownout ends: the date in Retry-After of a 503 or 410. Seconds mean an outage. */
  readonly retryAt: number | undefined;
  /** The targets of the resource's links by relation type, resolved if the URL is known. */
  readonly links: ReadonlyMap<string, readonly string[]>;
  /** Every fault found. */
  readonly faults: readonly Fault[];
}

/** The relations of a retirement (RFC 5829 §3.6, RFC 9745 §3, RFC 8594 §6). */
export const RELATIONS = ["successor-version", "deprecation", "sunset"];

/** Matches a Date, with any parameters (RFC 9651 §3.3.7, §3.3.8 and §3.1.2). */
const DATE = /^@(-?\d{1,15})(?:; *[a-z*][\w.*-]*(?:=(?:%?"(?:[^"\\]|\\.)*"|[^\s;",]+))?)*$/;

/** Matches the boolean false of RFC 9651 §3.3.6, and `false` as the opposite of an invalid `true`. */
const NOT_DEPRECATED = /^(?:\?0|false)(?: *;|$)/i;

/** A response, and the values read from it. */
interface Reading extends Omit<Inspection, "state" | "faults"> {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly now: number;
  readonly relations: ReturnType<typeof readRelations>;
}

/**
 * Returns the announcement of a response, and every fault in it. Nothing that a server sends makes
 * this throw, or take more than linear time.
 *
 * @param response A `Response`, or any object with a `status` and `headers`, like a response of
 *   axios. The headers are iterable as pairs of names and values, or an object with a property for
 *   each.
 * @param url The URL of the response, unless it states its own.
 * @param now Milliseconds since the epoch. Default: the system clock.
 * @throws {TypeError} If the response lacks such a `status` or `headers`, as an `IncomingMessage`
 *   does.
 *
 * @example A deprecation without a date
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { inspect } from "@media-head/lifecycle";
 *
 * const headers = { Deprecation: "true", Link: '</v2/songs>; rel="successor-version"' };
 * const url = "https://example.com/v1/songs";
 * const { state, links, faults } = inspect(new Response("", { headers }), { url });
 * assertEquals(state, "deprecated");
 * assertEquals(links.get("successor-version"), ["https://example.com/v2/songs"]);
 * assertEquals(faults.map(({ section }) => section), ["RFC 9745 §2.1"]);
 * ```
 */
export function inspect(
  response: { status: number; headers: object; url?: string },
  options: { url?: string; now?: number } = {},
): Inspection {
  const { url = response.url ?? "", now = Date.now() } = options;
  const { status, headers: given } = response;
  if (typeof status !== "number" || typeof given !== "object") {
    const expected = "a Response, or an object with a status and headers";
    const pass = "{ status: message.statusCode, headers: message.headers }";
    throw new TypeError(`response: expected ${expected}; of an IncomingMessage, pass ${pass}`);
  }
  const entries = Symbol.iterator in given
    ? given as Iterable<readonly [string, unknown]>
    : Object.entries(given);
  const headers = new Map<string, string>();
  for (const [name, value] of entries) {
    if (value !== undefined) headers.set(name.toLowerCase(), String(value));
  }
  if (NOT_DEPRECATED.test(headers.get("deprecation") ?? "")) headers.delete("deprecation");
  const relations = readRelations(headers.get("link") ?? "", url);
  const links = new Map<string, string[]>();
  for (const { name, target } of relations) {
    if (target === undefined && !RELATIONS.includes(name)) continue;
    if (!links.has(name)) links.set(name, []);
    if (target !== undefined) links.get(name)?.push(target);
  }
  const isPresent = (name: string) => headers.has(name) || links.has(name);
  const isAnnounced = isPresent("deprecation") || isPresent("sunset");
  const isRefused = isAnnounced && (status === 503 || status === 410);
  const announced = {
    deprecatedAt: readLoosely(headers.get("deprecation"), now),
    sunsetAt: earliestIn(headers.get("sunset"), now),
    retryAt: isRefused ? parseHttpDate(headers.get("retry-after") ?? "", now) : undefined,
    links,
  };
  const reading = { ...announced, status, headers, now, relations };
  const faults = FAULTS.flatMap(([name, section, find]) =>
    find(reading).map((message) => ({ name, section, message }))
  );
  return { state: isAnnounced ? phaseOf(reading) : "none", ...announced, faults };
}

function phaseOf({ deprecatedAt = 0, sunsetAt = Infinity, retryAt, headers, now }: Reading): Phase {
  if (sunsetAt <= now) return "removed";
  if (retryAt !== undefined) return "brownout";
  return headers.has("deprecation") && deprecatedAt <= now ? "deprecated" : "announced";
}

/** Reads the links of the resource itself, not those of another one (RFC 8288 §3.2). */
function readRelations(value: string, url: string) {
  const base = URL.canParse(url) ? url : undefined;
  return parseLinks(value).flatMap(({ target: given = "", rel = [], anchor }) => {
    // An empty reference leads to the resource itself.
    const isUsable = given !== "" && (base === undefined || URL.canParse(given, base));
    const target = isUsable ? base ? new URL(given, base).href : given : undefined;
    const names = anchor === undefined ? [...new Set(rel)] : [];
    return names.map((name) => ({ name, target, given }));
  });
}

/** Every fault: its name, the section that it violates, and a function that returns messages. */
const FAULTS: readonly [name: string, section: string, find: (reading: Reading) => string[]][] = [
  ["invalid-deprecation", "RFC 9745 §2.1", ({ headers, deprecatedAt }) => {
    const value = headers.get("deprecation");
    const seconds = Number(DATE.exec(value ?? "")?.[1]);
    if (value === undefined || Math.abs(seconds) <= LAST_INSTANT / 1000) return [];
    const date = deprecatedAt === undefined ? "SECONDS" : Math.floor(deprecatedAt / 1000);
    return [difference("Deprecation", value, `@${date}`)];
  }],
  ["invalid-sunset", "RFC 8594 §3", ({ headers, sunsetAt }) => {
    const value = headers.get("sunset");
    const expected = sunsetAt === undefined ? "an HTTP-date" : formatHttpDate(sunsetAt);
    const isExpected = value === undefined || linesOf(value).every((line) => line === expected);
    return isExpected ? [] : [difference("Sunset", value, expected)];
  }],
  ["sunset-before-deprecation", "RFC 9745 §4", ({ deprecatedAt = NaN, sunsetAt = NaN }) => {
    const deprecation = `Deprecation, which is ${formatHttpDate(deprecatedAt)}`;
    return sunsetAt < deprecatedAt ? [`Sunset precedes ${deprecation}`] : [];
  }],
  ["served-after-sunset", "RFC 8594 §3", ({ sunsetAt = Infinity, now, status }) => {
    const isServed = sunsetAt <= now && (status < 300 || status === 304);
    return isServed ? [`Sunset has passed, but the status is ${status}`] : [];
  }],
  ["no-link-target", "RFC 8288 §3.1", ({ relations }) => {
    const broken = relations.filter(({ name, target }) => !target && RELATIONS.includes(name));
    return broken.map(({ name, given }) => `The link "${name}" leads to ${JSON.stringify(given)}`);
  }],
  ["fresh-beyond-phase", "RFC 9111 §4.2", (reading) => {
    const { deprecatedAt = 0, sunsetAt = 0, retryAt = 0, headers, now } = reading;
    const nextChange = Math.min(...[deprecatedAt, sunsetAt, retryAt].filter((at) => at > now));
    const late = [...headers].filter(([name, value]) =>
      freshUntil(name, value, reading) > nextChange
    );
    return late.map(([name, value]) =>
      difference(name, value, `an end by ${formatHttpDate(nextChange)}`)
    );
  }],
  // Pages of other origins that may read the content must be able to read the announcement.
  ["unreadable-by-pages", "Fetch §3.3.3", ({ headers, links, retryAt }) => {
    const sent = ["deprecation", "sunset"].filter((name) => headers.has(name));
    if (RELATIONS.some((relation) => links.has(relation))) sent.push("link");
    if (retryAt !== undefined) sent.push("retry-after");
    const value = headers.get("access-control-expose-headers") ?? "";
    const exposed = value.toLowerCase().split(/[\s,]+/);
    // For requests with credentials, "*" is just the name of a field.
    const isReadable = !headers.has("access-control-allow-origin") ||
      exposed.includes("*") && headers.get("access-control-allow-credentials") !== "true";
    const hidden = sent.filter((name) => !isReadable && !exposed.includes(name)).join(", ");
    return hidden ? [`Access-Control-Expose-Headers hides from pages: ${hidden}`] : [];
  }],
];

/** Returns the instant (milliseconds since the epoch) until which a field permits reuse. */
function freshUntil(field: string, value: string, { status, headers, now }: Reading): number {
  const date = parseHttpDate(headers.get("date") ?? "", now) ?? now;
  const age = Number(headers.get("age")) * 1000 || 0;
  const generatedAt = now - Math.max(0, now - date, age); // from its current age (§4.2.3)
  if (isCacheControl(field)) {
    const directives = new Directives(value);
    const { fresh, stale } = longestAges(value);
    const longest = directives.has("must-revalidate") ? fresh : fresh + stale;
    return directives.forbidsReuse() ? 0 : generatedAt + longest * 1000;
  }
  if (field !== "expires" && field !== "last-modified") return 0;
  const at = parseHttpDate(value, now);
  const control = new Directives(headers.get("cache-control") ?? "");
  if (at === undefined || control.has("max-age") || control.forbidsReuse()) return 0;
  if (field === "expires") return generatedAt + at - date;
  // Without explicit freshness, caches may use a tenth of the time since the last change (§4.2.2).
  const isExplicit = control.has("s-maxage") || headers.has("expires");
  return !isExplicit && HEURISTICALLY_CACHEABLE.has(status) ? generatedAt + (date - at) / 10 : 0;
}

function difference(field: string, value: string, expected: string): string {
  return `${field} is ${JSON.stringify(value)}: expected ${expected}`;
}

/** Returns the lines of a field of dates, which commas join. The comma after a weekday joins none. */
function linesOf(value: string): string[] {
  return value.split(/(?<!mon|tue|wed|thu|fri|sat|sun|day),/i).map((line) => line.trim());
}

/** Parses each line of a field, and returns the earliest instant. */
function earliestIn(value: string | undefined, now: number): number | undefined {
  const instants = linesOf(value ?? "").flatMap((line) => readLoosely(line, now) ?? []);
  return instants.length === 0 ? undefined : Math.min(...instants);
}

/** Parses an instant in any form that servers send, except forms that depend on the machine. */
function readLoosely(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const number = /^@?(-?\d+)(?:;|$)/.exec(value)?.[1];
  if (number !== undefined) { // beyond the year 9999, it must be milliseconds
    return [Number(number) * 1000, Number(number)].find((at) => Math.abs(at) <= LAST_INSTANT);
  }
  const isZoned = /(?:GMT|UTC?|Z|[+-]\d\d:?\d\d)$/.test(value);
  return parseHttpDate(value, now) ?? readInstant(isZoned ? new Date(Date.parse(value)) : value);
}
