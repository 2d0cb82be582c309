/** Single byte ranges (RFC 9110 §14). */

/** A satisfiable byte range, inclusive and zero-based. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

const SINGLE_RANGE = /^bytes=[ \t,]*(\d*)-(\d*)[ \t,]*$/i;

/**
 * Parses a Range field.
 *
 * @param length The length of the representation in bytes.
 * @returns The range, clamped to the representation; `"unsatisfiable"` if it contains none of its
 *   bytes (416); `undefined` to send the whole representation, because a server may ignore
 *   malformed ranges, other units and multiple ranges (§14.2).
 */
export function parseByteRange(
  value: string,
  length: number,
): ByteRange | "unsatisfiable" | undefined {
  const [, first, last] = SINGLE_RANGE.exec(value) ?? [];
  if (first === undefined || last === undefined) return undefined;

  if (first === "") {
    if (last === "") return undefined;
    const suffix = Number(last);
    if (suffix === 0) return "unsatisfiable";
    // Content-Range cannot describe an empty range, so empty content is sent whole.
    if (length === 0) return undefined;
    return { first: Math.max(0, length - suffix), last: length - 1 };
  }

  // Invalid (§14.1.1). As numbers, positions beyond 2^53 could compare equal.
  if (last !== "" && BigInt(last) < BigInt(first)) return undefined;
  if (Number(first) >= length) return "unsatisfiable";
  return { first: Number(first), last: Math.min(Number(last || Infinity), length - 1) };
}
