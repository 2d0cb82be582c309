/**
 * Joining the lines of each record of CSV, since a quoted value may have line breaks. A package could
 * do that, too, but a quote that is never closed would cost it all lines that follow.
 */

import { Buffer } from "node:buffer";
import { type ImportLine, MAX_LINE_BYTES } from "./lines.ts";

const [QUOTE, LF, CR] = [0x22, 0x0a, 0x0d] as const;

/**
 * What a line comes to: the end of a record; a quoted value that is `open` and goes on; or a quote
 * where none may be, so that the line is a record by itself, which is refused.
 */
type LineEnd = "closed" | "open" | "misquoted";

interface ScannedLine extends ImportLine {
  /** The number of bytes before the line. */
  readonly offset: number;
  /** What the line comes to as the first of a record, and after one that is `open`. */
  readonly asFirst: LineEnd;
  readonly asNext: LineEnd;
}

/**
 * Yields the lines of each record as one. If a quoted value is not closed within {@linkcode MAX_LINE_BYTES}, or by a quote where none may be, its line is a record by
 * itself, and the lines after it are read as if it were not there.
 *
 * Each line is scanned once for both cases. So the time is that of reading, however many are open.
 */
export async function* joinRecords(
  groups: AsyncIterable<readonly ImportLine[]>,
  separator: string,
): AsyncGenerator<ImportLine[]> {
  const code = separator.charCodeAt(0);
  let waiting: ScannedLine[] = []; // for the end of a record
  let next = 0; // the first of them that ends an open value
  let size = 0;
  /** Returns the records that are whole. */
  const take = (isEnd: boolean): ImportLine[] => {
    const records: ImportLine[] = [];
    let at = 0;
    for (let first; (first = waiting[at]) !== undefined;) {
      let end = at + 1;
      if (first.asFirst === "open") {
        next = Math.max(next, end);
        while (waiting[next]?.asNext === "open") next++;
        const last = waiting[next];
        const isTooLong = (last?.offset ?? size) - first.offset > MAX_LINE_BYTES;
        if (last === undefined && !isTooLong && !isEnd) break;
        if (last?.asNext === "closed" && !isTooLong) end = next + 1;
      }
      records.push(joined(waiting.slice(at, end), first));
      at = end;
    }
    waiting = waiting.slice(at);
    next -= at;
    return records;
  };
  for await (const lines of groups) {
    for (const line of lines) {
      const [asFirst, asNext] = [
        lineEndIn(line.bytes, code, false),
        lineEndIn(line.bytes, code, true),
      ];
      waiting.push({ ...line, offset: size, asFirst, asNext });
      size += line.bytes.length;
    }
    yield take(false);
  }
  yield take(true);
}

function joined(lines: readonly ImportLine[], first: ImportLine): ImportLine {
  const bytes = lines.length === 1 ? first.bytes : Buffer.concat(lines.map(({ bytes }) => bytes));
  return { number: first.number, last: (lines.at(-1) ?? first).last, bytes };
}

/**
 * Scans a line.
 *
 * @param isOpen Whether a quoted value goes on from the line before it.
 */
function lineEndIn(bytes: Uint8Array, separator: number, isOpen: boolean): LineEnd {
  let at = 0;
  for (;;) {
    if (isOpen || bytes[at] === QUOTE) {
      if (!isOpen) at++;
      for (isOpen = true; isOpen;) {
        const quote = bytes.indexOf(QUOTE, at);
        if (quote < 0) return "open";
        isOpen = bytes[quote + 1] === QUOTE; // a doubled one stands for itself
        at = quote + (isOpen ? 2 : 1);
      }
      if (isEndAt(bytes, at)) return "closed";
      if (bytes[at] !== separator) return "misquoted";
    } else {
      while (at < bytes.length && bytes[at] !== separator) {
        if (bytes[at++] === QUOTE) return "misquoted";
      }
      if (at === bytes.length) return "closed";
    }
    at++; // the next value
  }
}

/** Whether nothing but a line break is left. */
function isEndAt(bytes: Uint8Array, at: number): boolean {
  const end = bytes[at] === CR ? at + 1 : at;
  return end === bytes.length || bytes[end] === LF;
}
