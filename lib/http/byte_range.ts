/**
 * Single byte ranges (RFC 9110 §14).
 */

/** A satisfiable range of bytes; both ends included, counted from 0. */
export interface ByteRange {
  /** Position of the first byte, from 0. */
  readonly first: number;
  /** Position of the last byte, inclusive. */
  readonly last: number;
}

const SINGLE_RANGE = /^bytes=[ \t,]*(?<first>\d*)-(?<last>\d*)[ \t,]*$/i;

/**
 * Decides what part of a representation a Range field asks for.
 *
 * @param value The field value.
 * @param length The length of the representation in bytes.
 * @returns The range, cut to the representation; `"unsatisfiable"` when it holds no byte of it
 *   (416); `undefined` when the whole representation answers: a malformed range, another unit, or
 *   several ranges, all of which a server may ignore (§14.2).
 */
export function parseByteRange(
  value: string,
  length: number,
): ByteRange | "unsatisfiable" | undefined {
  const groups = SINGLE_RANGE.exec(value)?.groups;
  if (groups === undefined) return undefined;
  const { first, last } = groups as { first: string; last: string };

  if (first === "") {
    if (last === "") return undefined;
    const suffix = Number(last);
    if (suffix === 0) return "unsatisfiable";
    // Content-Range cannot describe a part of nothing, so an empty whole answers as it is.
    if (length === 0) return undefined;
    return { first: Math.max(0, length - suffix), last: length - 1 };
  }

  const range = { first: Number(first), last: last === "" ? Infinity : Number(last) };
  if (isBackwards(first, last)) return undefined;
  if (range.first >= length) return "unsatisfiable";
  return { first: range.first, last: Math.min(range.last, length - 1) };
}

/** Whether the last position is before the first, which makes a range invalid (§14.1.1). */
function isBackwards(first: string, last: string): boolean {
  // Compared as integers: as numbers, positions beyond 2^53 would come out equal.
  return last !== "" && BigInt(last) < BigInt(first);
}
