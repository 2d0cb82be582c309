/** Inspection of responses: what they announce, and what is wrong with how they say it. */

import { formatHttpDate, parseHttpDate } from "../http/http_date.ts";
import { parseLinks } from "../http/link.ts";
import { isCacheControl, limitAges } from "./freshness.ts";
import { LAST, readInstant } from "./instant.ts";

/** A fault in how a retirement is announced. */
export interface Fault {
  /** Its name, for programs: one of those in README. */
  readonly name: string;
  /** The section of the standard that it violates, like "RFC 9745 §2.1". */
  readonly section: string;
  /** What is wrong, with the value, and what is expected. */
  readonly message: string;
}

/** What a response announces. Instants are milliseconds since the epoch, read tolerantly. */
export interface Inspection {
  /** When the deprecation begins or began. */
  readonly deprecatedAt: number | undefined;
  /** When the removal follows or followed. */
  readonly sunsetAt: number | undefined;
  /** When a 503 or 410 ends, as in a brownout. */
  readonly retryAt: number | undefined;
  /** The targets of the resource's links by relation type, resolved if the URL is known. */
  readonly links: ReadonlyMap<string, readonly string[]>;
  /** Every fault found. */
  readonly faults: readonly Fault[];
}

/** The relations of a retirement (RFC 5829 §3.6, RFC 9745 §3, RFC 8594 §6). */
export const RELATIONS = ["successor-version", "deprecation", "sunset"];

/** A Date that may have parameters (RFC 9651 §3.3.7 and §3.1.2). */
const DATE = /^@(-?\d{1,15})(?:; *[a-z*][\w.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^\s;",]+))?)*$/;

/** Permission to serve a stale response (RFC 5861). */
const STALE = /\bstale-(?:while-revalidate|if-error)\s*=\s*"?(\d+)/gi;

/**
 * Returns what a response announces, and every fault in it. It throws on no response.
 *
 * @param url The URL of the response, unless it states its own.
 * @param now Milliseconds since the epoch. Default: the system clock.
 *
 * @example A deprecation without a date
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { inspect } from "@media-head/lifecycle";
 *
 * const headers = { Deprecation: "true", Link: '</v2/songs>; rel="successor-version"' };
 * const url = "https://example.com/v1/songs";
 * const { links, faults } = inspect(new Response("", { headers }), { url });
 * assertEquals(links.get("successor-version"), ["https://example.com/v2/songs"]);
 * assertEquals(faults.map(({ section }) => section), ["RFC 9745 §2.1"]);
 * ```
 */
export function inspect(
  response: Pick<Response, "status" | "headers" | "url">,
  { url = response.url, now = Date.now() }: { readonly url?: string; readonly now?: number } = {},
): Inspection {
  const { status, headers } = response;
  const faults: Fault[] = [];
  const blame = (name: string, section: string, message: string) =>
    faults.push({ name, section, message });
  const is = (field: string, value: string, expected: string) =>
    `${field} is ${JSON.stringify(value)}: expected ${expected}`;

  const deprecation = headers.get("deprecation");
  const deprecatedAt = readLoosely(deprecation, now);
  if (deprecation !== null && !(Math.abs(Number(DATE.exec(deprecation)?.[1])) <= LAST / 1000)) {
    const expected = deprecatedAt === undefined
      ? "@SECONDS"
      : `@${Math.floor(deprecatedAt / 1000)}`;
    blame("invalid-deprecation", "RFC 9745 §2.1", is("Deprecation", deprecation, expected));
  }
  const sunset = headers.get("sunset");
  const sunsetAt = readLoosely(sunset, now);
  const expected = sunsetAt === undefined ? "an HTTP-date" : formatHttpDate(sunsetAt);
  if (sunset !== null && sunset !== expected) {
    blame("invalid-sunset", "RFC 8594 §3", is("Sunset", sunset, expected));
  }
  if (deprecatedAt !== undefined && sunsetAt !== undefined && sunsetAt < deprecatedAt) {
    const message = `Sunset precedes Deprecation, which is ${formatHttpDate(deprecatedAt)}`;
    blame("sunset-before-deprecation", "RFC 9745 §4", message);
  }
  if (sunsetAt !== undefined && sunsetAt <= now && (status < 300 || status === 304)) {
    blame("served-after-sunset", "RFC 8594 §3", `Sunset has passed, but the status is ${status}`);
  }

  const links = new Map<string, string[]>();
  for (const { target, rel = [], anchor } of parseLinks(headers.get("link") ?? "")) {
    if (anchor !== undefined) continue; // a link of another resource (RFC 8288 §3.2)
    for (const relation of rel) {
      const targets = links.get(relation) ?? [];
      const base = URL.canParse(url) ? url : undefined;
      // An empty reference leads to the resource itself.
      if (target && (base === undefined || URL.canParse(target, base))) {
        links.set(relation, [...targets, base ? new URL(target, base).href : target]);
      } else if (RELATIONS.includes(relation)) {
        links.set(relation, targets);
        const got = JSON.stringify(target ?? "");
        blame("no-link-target", "RFC 8288 §3.1", `The link "${relation}" has the target ${got}`);
      }
    }
  }
  // An error may be about a resource that never was, or be the removal of one without successor.
  if (deprecation !== null && !links.has("successor-version") && status < 400) {
    blame("no-successor", "RFC 5829 §3.6", 'No link has the relation "successor-version"');
  }

  const said = ["deprecation", "sunset"].filter((name) => headers.has(name));
  if (RELATIONS.some((relation) => links.has(relation))) said.push("link");
  const isOut = said.length > 0 && (status === 503 || status === 410);
  const retryAfter = isOut ? headers.get("retry-after") : null;
  const retryAt = /^\d{1,9}$/.test(retryAfter ?? "")
    ? now + Number(retryAfter) * 1000
    : parseHttpDate(retryAfter ?? "", now);
  const until = Math.min(
    ...[deprecatedAt, sunsetAt, retryAt].map((at = 0) => at > now ? at : Infinity),
  );
  const sent = parseHttpDate(headers.get("date") ?? "", now) ?? now;
  for (const [field, value] of headers) {
    const isStored = !/\bno-(?:store|cache)\b(?!\s*=)/i.test(value);
    const hasAge = /\bmax-age\b/i.test(headers.get("cache-control") ?? "");
    const stale = /\bmust-revalidate\b/i.test(value) ? [] : value.matchAll(STALE);
    const longestStale = Math.max(0, ...[...stale].map(([, seconds]) => Number(seconds)));
    const end = isCacheControl(field) && isStored
      ? sent + (limitAges(value, Infinity, 0).longest + longestStale) * 1000
      : field === "expires" && !hasAge && parseHttpDate(value, now) || 0;
    if (end <= until) continue;
    const expected = `an end by ${formatHttpDate(until)}`;
    blame("fresh-beyond-phase", "RFC 9111 §4.2", is(field, value, expected));
  }

  if (retryAt !== undefined) said.push("retry-after");
  const exposed = (headers.get("access-control-expose-headers") ?? "").toLowerCase().split(
    /[\s,]+/,
  );
  // With credentials, "*" is a field's name.
  const isOpen = !headers.has("access-control-allow-origin") ||
    exposed.includes("*") && headers.get("access-control-allow-credentials") !== "true";
  const hidden = said.filter((name) => !isOpen && !exposed.includes(name)).join(", ");
  if (hidden !== "") {
    const message = `Access-Control-Expose-Headers hides from pages: ${hidden}`;
    blame("unreadable-by-pages", "Fetch §3.3.3", message);
  }
  return { deprecatedAt, sunsetAt, retryAt, links, faults };
}

/** Reads an instant in any form that servers send, except those that depend on the machine. */
function readLoosely(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  const number = /^@?(-?\d+)(?:;|$)/.exec(value)?.[1];
  if (number !== undefined) { // beyond the year 9999, it must be milliseconds
    return [Number(number) * 1000, Number(number)].find((at) => Math.abs(at) <= LAST);
  }
  const isZoned = /(?:GMT|UTC?|Z|[+-]\d\d:?\d\d)$/.test(value);
  return parseHttpDate(value, now) ?? readInstant(isZoned ? new Date(Date.parse(value)) : value);
}
