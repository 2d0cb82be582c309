/**
 * Entity tags (RFC 9110 §8.8.3): parsing and comparison.
 */

/** An entity tag, e.g. `W/"a,b"` is `{ weak: true, opaque: "a,b" }`. */
export interface EntityTag {
  /** Whether `W/` precedes it. */
  readonly weak: boolean;
  /** The text between the quotes, which may contain commas. */
  readonly opaque: string;
}

/** List separators, then one tag. etagc is %x21, %x23-7E and obs-text, which excludes quotes. */
const TAG = /[ \t,]*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?=,|$)/y;
const REST = /[ \t,]*/y;

/**
 * Parses If-Match or If-None-Match: `*`, or a list of entity tags, scanned as quoted strings because
 * tags may contain commas. Empty list elements are skipped (RFC 9110 §5.6.1).
 *
 * @returns `"*"`, or the tags; an empty list if any part is malformed, so that it matches nothing.
 */
export function parseEntityTags(value: string): "*" | EntityTag[] {
  if (/^[ \t]*\*[ \t]*$/.test(value)) return "*"; // trim() would strip more
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

/** Compares strongly (RFC 9110 §8.8.3.2): equal, and neither is weak. */
export function matchesStrongly(a: EntityTag, b: EntityTag): boolean {
  return !a.weak && !b.weak && a.opaque === b.opaque;
}

/** Compares weakly (RFC 9110 §8.8.3.2): equal, weak or not. */
export function matchesWeakly(a: EntityTag, b: EntityTag): boolean {
  return a.opaque === b.opaque;
}
