/**
 * Conditional requests (RFC 9110 §13): a function for each condition, their order of evaluation, and
 * the entity tags in them (§8.8.3).
 */

import { type ByteRange, parseByteRange } from "./byte_range.ts";
import { parseHttpDate } from "./http_date.ts";

/** An entity tag, e.g. `W/"a,b"` is `{ weak: true, opaque: "a,b" }`. */
export interface EntityTag {
  /** Whether `W/` precedes it. */
  readonly weak: boolean;
  /** The text between the quotes. It may contain commas. */
  readonly opaque: string;
}

/** The validators against which conditions are evaluated. */
export interface Validators {
  /** Identifies the exact bytes of the representation. */
  readonly etag: EntityTag;
  /**
   * The `Last-Modified` in milliseconds since the epoch, in whole seconds. If `undefined`,
   * conditions on it are ignored.
   */
  readonly lastModified: number | undefined;
}

/** Whether a condition is true; `undefined` if the request lacks it. */
type Condition = boolean | undefined;

/**
 * Evaluates the preconditions of a GET or HEAD in the order of RFC 9110 §13.2.2. Call this only if
 * the response without them would be a 2xx (§13.2.1).
 *
 * @param now Milliseconds since the epoch; determines the century of a two-digit year.
 * @returns The status to send, or `undefined` to proceed.
 */
export function evaluatePreconditions(
  fields: Headers,
  validators: Validators,
  now: number,
): 304 | 412 | undefined {
  const match = ifMatch(fields, validators);
  if (match === false) return 412;
  if (match === undefined && ifUnmodifiedSince(fields, validators, now) === false) return 412;

  const noneMatch = ifNoneMatch(fields, validators);
  if (noneMatch === false) return 304;
  if (noneMatch === undefined && ifModifiedSince(fields, validators, now) === false) return 304;

  return undefined;
}

/**
 * Returns the range that a GET requests, unless its If-Range names another representation
 * (RFC 9110 §13.1.5).
 *
 * @param representation The representation to send; its length is in bytes. Its `lastModified`
 *   must be a strong validator (§8.8.2.2), or `undefined`.
 * @param now Milliseconds since the epoch; determines the century of a two-digit year.
 * @returns As {@linkcode parseByteRange}.
 */
export function requestedRange(
  fields: Headers,
  representation: Validators & { readonly length: number },
  now: number,
): ByteRange | "unsatisfiable" | undefined {
  const value = fields.get("range");
  if (value === null || ifRange(fields, representation, now) === false) return undefined;
  return parseByteRange(value, representation.length);
}

/** §13.1.1 */
function ifMatch(fields: Headers, { etag }: Validators): Condition {
  const value = fields.get("if-match");
  if (value === null) return undefined;
  const tags = parseEntityTags(value);
  return tags === "*" || tags.some((tag) => matchesStrongly(tag, etag));
}

/** §13.1.2 */
function ifNoneMatch(fields: Headers, { etag }: Validators): Condition {
  const value = fields.get("if-none-match");
  if (value === null) return undefined;
  const tags = parseEntityTags(value);
  return !(tags === "*" || tags.some((tag) => matchesWeakly(tag, etag)));
}

/** §13.1.3 */
function ifModifiedSince(fields: Headers, { lastModified }: Validators, now: number): Condition {
  const date = parseHttpDate(fields.get("if-modified-since") ?? "", now);
  if (date === undefined || lastModified === undefined) return undefined;
  return lastModified > date;
}

/** §13.1.4 */
function ifUnmodifiedSince(fields: Headers, { lastModified }: Validators, now: number): Condition {
  const date = parseHttpDate(fields.get("if-unmodified-since") ?? "", now);
  if (date === undefined || lastModified === undefined) return undefined;
  return lastModified <= date;
}

/** §13.1.5 */
function ifRange(fields: Headers, { etag, lastModified }: Validators, now: number): Condition {
  const value = fields.get("if-range");
  if (value === null) return undefined;
  // The caller states that the date is a strong validator, so an exact match is enough.
  const date = parseHttpDate(value, now);
  if (date !== undefined) return date === lastModified;
  if (!/^(W\/)?"[^"]*"$/.test(value)) return false; // a single tag, not a list
  const tags = parseEntityTags(value);
  return tags !== "*" && tags.length === 1 && matchesStrongly(tags[0] as EntityTag, etag);
}

/** Matches a tag. Its characters (etagc) are %x21, %x23-7E and obs-text, so never a quote. */
const TAG = /(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"/g;
const LIST = /^[ \t,]*(?:(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"[ \t]*(?:$|,[ \t,]*))*$/;

/**
 * Parses If-Match or If-None-Match: `*`, or a list of entity tags, scanned as quoted strings
 * because tags may contain commas. Empty list elements are skipped (RFC 9110 §5.6.1).
 *
 * @returns `"*"`, or the tags; an empty list if any part is malformed, so that it matches nothing.
 */
export function parseEntityTags(value: string): "*" | EntityTag[] {
  if (/^[ \t]*\*[ \t]*$/.test(value)) return "*"; // trim() would strip more
  if (!LIST.test(value)) return [];
  return [...value.matchAll(TAG)].map(([, weak, opaque = ""]) => ({
    weak: weak !== undefined,
    opaque,
  }));
}

/** Compares tags strongly (RFC 9110 §8.8.3.2): they match if equal, and neither is weak. */
export function matchesStrongly(a: EntityTag, b: EntityTag): boolean {
  return !a.weak && !b.weak && a.opaque === b.opaque;
}

/** Compares tags weakly (RFC 9110 §8.8.3.2): they match if equal, weak or not. */
export function matchesWeakly(a: EntityTag, b: EntityTag): boolean {
  return a.opaque === b.opaque;
}
