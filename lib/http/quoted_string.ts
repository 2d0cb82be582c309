/** Quoted strings in the values of fields (RFC 9110 §5.6.4). */

/** Matches a quoted string, and its closing quote if it has one. */
const QUOTED_STRING = /"(?:[^"\\]|\\[^]?)*("?)/g;

/**
 * Returns whether the last quoted string in a value is not closed. Recipients would take what is added
 * after such a value for a part of it.
 */
export function isUnclosed(value: string): boolean {
  const [, closing] = [...value.matchAll(QUOTED_STRING)].at(-1) ?? [];
  return closing === "";
}
