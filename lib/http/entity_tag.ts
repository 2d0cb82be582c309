/** Entity tags (RFC 9110 §8.8.3): parsing and comparison. */

/** An entity tag, e.g. `W/"a,b"` is `{ weak: true, opaque: "a,b" }`. */
export interface EntityTag {
  /** Whether `W/` precedes it. */
  readonly weak: boolean;
  /** The text between the quotes. It may contain commas. */
  readonly opaque: string;
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
