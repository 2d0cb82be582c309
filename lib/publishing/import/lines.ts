/** Splitting input of any length into lines of bytes. */

import { Buffer } from "node:buffer";
import { RefusedError } from "../../errors/refused_error.ts";

/** The maximum length of a line: many times that of the longest valid one. */
export const MAX_LINE_BYTES = 65_536;

/** The byte that ends a line. */
export const NEWLINE = 0x0a;

/** How to make lines of an array. */
export const ARRAY_REMEDY =
  'For an array: jq --compact-output ".[]", or ".[].data[]?" for one of phpMyAdmin';

/** A line to import. A record of CSV counts as one, even if its values have line breaks. */
export interface ImportLine {
  /** Counted from 1. */
  readonly number: number;
  /** The number of the last line of a record. */
  readonly last: number;
  /** Includes the newline, if there is one. */
  readonly bytes: Uint8Array;
}

/**
 * Splits chunks of bytes into lines, yielded in one group per chunk.
 *
 * @throws {RefusedError} When a line is too long to be valid.
 */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<ImportLine[]> {
  let number = 1;
  let rest: Uint8Array = new Uint8Array(); // the beginning of an unfinished line
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk]);
    const lines: ImportLine[] = [];
    let start = 0;
    for (let newline; (newline = bytes.indexOf(NEWLINE, start)) >= 0; start = newline + 1) {
      if (newline - start >= MAX_LINE_BYTES) break;
      lines.push({ number, last: number++, bytes: bytes.subarray(start, newline + 1) });
    }
    rest = bytes.subarray(start);
    yield lines;
    if (rest.length > MAX_LINE_BYTES) {
      const fault = `Line ${number} is longer than ${MAX_LINE_BYTES} bytes; expected one item`;
      const isArray = /^\s*\[/.test(new TextDecoder().decode(rest.subarray(0, 64)));
      const remedy = isArray ? ARRAY_REMEDY : `Correct line ${number} first`;
      throw new RefusedError(`${fault} per line. ${remedy}`);
    }
  }
  if (rest.length > 0) yield [{ number, last: number, bytes: rest }];
}
