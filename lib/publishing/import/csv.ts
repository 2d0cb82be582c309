/** CSV (RFC 4180) whose first line names the members of the records in the lines after it. */

import { parse } from "@std/csv/parse";
import { Buffer } from "node:buffer";
import { RefusedError } from "../../errors/refused_error.ts";
import { quoted } from "../../input/printable.ts";
import { decodeLine, MEMBERS, type RawRecord } from "./imported_record.ts";
import { type ImportLine, MAX_LINE_BYTES } from "./lines.ts";

/** The members whose values are numbers. */
const NUMBERS: readonly string[] = ["length"];

const QUOTE = 0x22;

/** What the first line of a file says of the others. */
export interface CsvHeader {
  readonly separator: string;
  /** The member in each column; empty for a column without a name. */
  readonly columns: readonly string[];
}

/** Returns the separator that a line `sep=;` states, as spreadsheets write it before the header. */
export function separatorIn(text: string): string | undefined {
  return /^sep=(.)$/i.exec(text.trim())?.[1];
}

/**
 * Reads the header.
 *
 * @param separator The separator that is stated; by default, the first that the line has.
 * @returns `undefined` if the line names no member.
 * @throws {RefusedError} If it names members, but not each column once and by a known name.
 */
export function readHeader(
  text: string,
  separator = /[,;\t]/.exec(text)?.[0] ?? ",",
): CsvHeader | undefined {
  const columns = (cellsIn(text, separator) ?? []).map((name) => name.trim());
  while (columns.at(-1) === "") columns.pop();
  if (!columns.some((name) => MEMBERS.includes(name))) return undefined;
  if (separator !== "," && separator !== ";") {
    throw new RefusedError(`Values are separated by ${quoted(separator)}; expected "," or ";"`);
  }
  for (const [index, name] of columns.entries()) {
    if (columns.indexOf(name) < index && name !== "") {
      throw new RefusedError(`The first line names ${quoted(name)} twice; expected it once`);
    }
    if (name === "" || MEMBERS.includes(name)) continue;
    const expected = `expected ${MEMBERS.join(", ")}`;
    throw new RefusedError(`The first line names ${quoted(name)}, which is unknown; ${expected}`);
  }
  return { separator, columns };
}

/**
 * Joins the lines of each record, since a quoted value may have line breaks. A record has the number
 * of its first line.
 *
 * If the quote of a value is not closed within {@linkcode MAX_LINE_BYTES}, its line is a record by
 * itself, which {@linkcode readRow} refuses, and the lines after it are not lost.
 */
export async function* joinRecords(
  groups: AsyncIterable<readonly ImportLine[]>,
  { separator }: CsvHeader,
): AsyncGenerator<ImportLine[]> {
  let open: readonly ImportLine[] = [];
  for await (const lines of groups) {
    const { records, rest } = joinLines([...open, ...lines], separator);
    open = rest;
    yield records;
  }
  while (open.length > 0) {
    const { records, rest } = joinLines(open.slice(1), separator);
    yield [...open.slice(0, 1), ...records];
    open = rest;
  }
}

/** Returns the whole records, and the lines of the last one if a quote in it is not closed. */
function joinLines(lines: readonly ImportLine[], separator: string) {
  const records: ImportLine[] = [];
  let start = 0;
  let length = 0;
  let isOpen = false;
  for (let at = 0; at < lines.length; at++) {
    const { bytes } = lines[at] as ImportLine;
    isOpen = isOpenAfter(bytes, separator.charCodeAt(0), isOpen);
    length += bytes.length;
    if (isOpen && length <= MAX_LINE_BYTES) continue;
    if (isOpen) at = start;
    const joined = lines.slice(start, at + 1);
    const [first] = joined as [ImportLine];
    records.push(
      at === start ? first : {
        number: first.number,
        bytes: Buffer.concat(joined.map(({ bytes }) => bytes)),
      },
    );
    start = at + 1;
    length = 0;
    isOpen = false;
  }
  return { records, rest: lines.slice(start) };
}

/**
 * Returns whether a quoted value goes on after a line.
 *
 * @param isOpen Whether one goes on before it.
 */
function isOpenAfter(bytes: Uint8Array, separator: number, isOpen: boolean): boolean {
  let at = 0;
  do {
    if (!isOpen && bytes[at] === QUOTE) {
      isOpen = true;
      at++;
    }
    while (isOpen) {
      const quote = bytes.indexOf(QUOTE, at);
      if (quote < 0) return true;
      isOpen = bytes[quote + 1] === QUOTE; // a doubled one stands for itself
      at = quote + (isOpen ? 2 : 1);
    }
    at = bytes.indexOf(separator, at) + 1; // the next value, if there is one
  } while (at > 0);
  return false;
}

/**
 * Reads a record. An empty value is a member that is not there. Some spreadsheets leave out those at
 * the end of a line.
 *
 * @returns `undefined` if all values are empty.
 * @throws {RefusedError} If it does not fit the header, or is not CSV.
 */
export function readRow(
  bytes: Uint8Array,
  { separator, columns }: CsvHeader,
): RawRecord | undefined {
  const cells = cellsIn(decodeLine(bytes), separator);
  if (cells === undefined) {
    const expected = 'expected quotes around a whole value, and "" for a quote in it';
    throw new RefusedError(`A quote is not closed, or is inside a value; ${expected}`, {
      kind: "quotes",
    });
  }
  if (cells.every((cell) => cell === "")) return undefined;
  if (cells.slice(columns.length).some((cell) => cell !== "")) {
    const expected = `expected ${columns.length} at most: ${columns.join(separator)}`;
    throw new RefusedError(`The line has ${cells.length} values; ${expected}`, {
      kind: "too many values",
    });
  }
  const record: Record<string, unknown> = {};
  for (const [index, name] of columns.entries()) {
    const cell = cells[index] ?? "";
    if (cell === "") continue;
    if (name === "") {
      throw new RefusedError(`${quoted(cell)} is in column ${index + 1}, which has no name`, {
        kind: "column without a name",
      });
    }
    record[name] = NUMBERS.includes(name) && /^\d+$/.test(cell) ? Number(cell) : cell;
  }
  return record;
}

/** Returns the values of one record; `undefined` if its quotes are not those of CSV. */
function cellsIn(text: string, separator: string): string[] | undefined {
  try {
    return parse(text, { separator })[0] ?? [];
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
