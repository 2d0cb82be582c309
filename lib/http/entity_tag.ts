/**
 * Entity tags (RFC 9110 §8.8.3): reading lists of them, and the two ways to compare.
 */

/** One entity tag, e.g. `W/"a,b"` is `{ weak: true, opaque: "a,b" }`. */
export interface EntityTag {
  /** Whether `W/` precedes it. */
  readonly weak: boolean;
  /** What stands between the quotes; may hold commas. */
  readonly opaque: string;
}

/** A run of list separators, then one tag: etagc is %x21, %x23-7E and obs-text, so no quote. */
const TAG = /[ \t,]*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?=,|$)/y;
const REST = /[ \t,]*/y;

/**
 * Reads the value of If-Match or If-None-Match: `*`, or a list of entity tags, scanned as quoted
 * strings because a tag may hold commas. Empty list elements are skipped (RFC 9110 §5.6.1).
 *
 * @returns `"*"`, or the tags; none at all when any part of the list is malformed, so that a
 *   garbled field matches nothing.
 */
export function parseEntityTags(value: string): "*" | EntityTag[] {
  if (/^[ \t]*\*[ \t]*$/.test(value)) return "*"; // trim() would take more for white space
  const tags: EntityTag[] = [];
  let end = 0;
  for (;;) {
    TAG.lastIndex = end;
    const match = TAG.exec(value);
    if (match === null) break;
    tags.push({ weak: match[1] !== undefined, opaque: match[2] as string });
    end = TAG.lastIndex;
  }
  REST.lastIndex = end;
  REST.exec(value);
  return REST.lastIndex === value.length ? tags : [];
}

/** Strong comparison (RFC 9110 §8.8.3.2): equal, and neither is weak. */
export function matchesStrongly(a: EntityTag, b: EntityTag): boolean {
  return !a.weak && !b.weak && a.opaque === b.opaque;
}

/** Weak comparison (RFC 9110 §8.8.3.2): equal, weak or not. */
export function matchesWeakly(a: EntityTag, b: EntityTag): boolean {
  return a.opaque === b.opaque;
}
