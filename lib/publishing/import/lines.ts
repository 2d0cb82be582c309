/** Splitting input of any length into lines of bytes. */

import { Buffer } from "node:buffer";

/** Bytes of the longest line kept whole: many times the longest record. */
export const MAX_LINE = 65_536;

/** The byte that ends a line. */
export const NEWLINE = 0x0a;

/** A line, or a piece of one that is too long. */
export interface ImportLine {
  /** Counted from 1. */
  readonly number: number;
  /** Includes the newline, if there is one. */
  readonly bytes: Uint8Array;
  /** Whether this is the whole line; the pieces of a longer line follow each other. */
  readonly isWhole: boolean;
}

/** Splits chunks of bytes into lines, yielded in one group per chunk. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<ImportLine[]> {
  let number = 1;
  let begun: Uint8Array<ArrayBuffer> = new Uint8Array(); // of the unfinished line
  let isWhole = true; // so far
  for await (const chunk of chunks) {
    const lines: ImportLine[] = [];
    for (let start = 0; start < chunk.length;) {
      const newline = chunk.indexOf(NEWLINE, start);
      const end = newline < 0 ? chunk.length : newline + 1;
      const rest = chunk.subarray(start, end);
      const bytes = begun.length === 0 ? rest : Buffer.concat([begun, rest]);
      start = end;
      isWhole &&= bytes.length <= MAX_LINE;
      if (newline < 0 && isWhole) {
        begun = bytes;
        break;
      }
      lines.push({ number, bytes, isWhole });
      begun = new Uint8Array();
      if (newline < 0) break;
      number++;
      isWhole = true;
    }
    yield lines;
  }
  if (begun.length > 0) yield [{ number, bytes: begun, isWhole }];
}
