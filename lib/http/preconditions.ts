/**
 * Conditional requests (RFC 9110 §13): one function a condition, each answering whether it is
 * absent, true or false, and the order in which they count.
 */

import { type ByteRange, parseByteRange } from "./byte_range.ts";
import { type EntityTag, matchesStrongly, matchesWeakly, parseEntityTags } from "./entity_tag.ts";
import { parseHttpDate } from "./http_date.ts";

/** What a request's conditions are held against. */
export interface Validators {
  /** Names the exact bytes of the representation. */
  readonly etag: EntityTag;
  /**
   * Milliseconds since the epoch, in whole seconds, as `Last-Modified` states it; `undefined`
   * where there is none, and then conditions on it are ignored.
   */
  readonly lastModified: number | undefined;
}

/** The outcome of one condition; `undefined` when the request does not state it. */
type Condition = boolean | undefined;

/** The conditions of a request, as a text that is the same for the same ones; empty without any. */
export function conditionsIn(fields: Headers): string {
  return line(fields, "if-none-match") + line(fields, "if-modified-since") +
    line(fields, "if-match") + line(fields, "if-unmodified-since");
}

/** A field as a line; no field has two. */
function line(fields: Headers, name: string): string {
  return fields.has(name) ? `\n${name} ${fields.get(name)}` : "";
}

/**
 * Evaluates the preconditions of a GET or HEAD in the order of RFC 9110 §13.2.2. To be called
 * only when the answer without them would be a 2xx (§13.2.1).
 *
 * @param fields The request's fields.
 * @param validators The validators of the representation that would be sent.
 * @param now Milliseconds since the epoch; only the century of an obsolete date depends on it.
 * @returns The status that ends the request here, or `undefined` to go on.
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
 * Decides what part of a representation a GET asks for: its Range, unless If-Range says that the
 * part would be one of another representation (RFC 9110 §13.1.5).
 *
 * @param representation What would be sent; its length is in bytes.
 * @param now Milliseconds since the epoch; only the century of an obsolete date depends on it.
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
  const date = dateOf(fields, "if-modified-since", now);
  if (date === undefined || lastModified === undefined) return undefined;
  return lastModified > date;
}

/** §13.1.4 */
function ifUnmodifiedSince(fields: Headers, { lastModified }: Validators, now: number): Condition {
  const date = dateOf(fields, "if-unmodified-since", now);
  if (date === undefined || lastModified === undefined) return undefined;
  return lastModified <= date;
}

/** §13.1.5 */
function ifRange(fields: Headers, { etag, lastModified }: Validators, now: number): Condition {
  const value = fields.get("if-range");
  if (value === null) return undefined;
  // An item never changes under its token, so its date is a strong validator (§8.8.2.2).
  const date = parseHttpDate(value, now);
  if (date !== undefined) return date === lastModified;
  if (!/^(W\/)?"[^"]*"$/.test(value)) return false; // one tag, where the others take a list
  const tags = parseEntityTags(value);
  return tags !== "*" && tags.length === 1 && matchesStrongly(tags[0] as EntityTag, etag);
}

function dateOf(fields: Headers, name: string, now: number): number | undefined {
  const value = fields.get(name);
  return value === null ? undefined : parseHttpDate(value, now);
}
