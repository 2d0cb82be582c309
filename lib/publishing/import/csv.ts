/** CSV (RFC 4180) whose first line names the members of the records after it. */

import { parse } from "@std/csv/parse";
import { RefusedError } from "../../errors/refused_error.ts";
import { quoted } from "../../input/printable.ts";
import { decodeLine, type LineMembers, MEMBERS } from "./valid_line.ts";

/** How spreadsheets, statistics programs and databases write that a value is missing. */
const MISSING: readonly string[] = [
  ...["NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "undefined", "\\N"],
];

/** What the first line of a file says of the others. */
export interface CsvHeader {
  readonly separator: string;
  /** The member in each column. */
  readonly columns: readonly string[];
}

/** Returns the separator that a line `sep=;` states, as spreadsheets write it before the header. */
export function separatorIn(text: string): string | undefined {
  return /^sep=(.)$/i.exec(text.trim())?.[1];
}

/**
 * Reads the header.
 *
 * @param stated The separator that is stated; by default, the first that the line has.
 * @returns `undefined` if the line names no member.
 * @throws {RefusedError} If it names members, but not each column once and by a known name.
 */
export function readHeader(text: string, stated?: string): CsvHeader | undefined {
  if (stated !== undefined) requireSeparator(stated); // before the package is given a quote
  const separator = stated ?? /[,;\t]/.exec(text)?.[0] ?? ",";
  const columns = (cellsIn(text, separator) ?? []).map((name) => name.trim());
  while (columns.at(-1) === "") columns.pop();
  if (!columns.some((name) => MEMBERS.includes(name))) return undefined;
  requireSeparator(separator);
  if (/\r\r\n$/.test(text)) {
    throw new RefusedError("Lines end with CR CR LF; expected LF or CRLF");
  }
  for (const [index, name] of columns.entries()) {
    if (name === "") {
      const remedy = "name it, or leave it out (pandas writes its index without index=False)";
      throw new RefusedError(`The first line has no name for column ${index + 1}; ${remedy}`);
    }
    if (columns.indexOf(name) < index) {
      throw new RefusedError(`The first line names ${quoted(name)} twice; expected it once`);
    }
    if (MEMBERS.includes(name)) continue;
    const expected = `expected ${MEMBERS.join(", ")}`;
    throw new RefusedError(`The first line names ${quoted(name)}, which is unknown; ${expected}`);
  }
  return { separator, columns };
}

function requireSeparator(separator: string): void {
  if (separator === "," || separator === ";") return;
  throw new RefusedError(`Values are separated by ${quoted(separator)}; expected "," or ";"`);
}

/**
 * Reads a record. An empty or missing value is a member that is not there, but for an empty token.
 * Some spreadsheets leave out empty values at the end of a line.
 *
 * @returns `undefined` if all values are empty.
 * @throws {RefusedError} If it does not fit the header, or is not CSV.
 */
export function readRecord(
  bytes: Uint8Array,
  { separator, columns }: CsvHeader,
): LineMembers | undefined {
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
  const members: Record<string, unknown> = {};
  const missing: Record<string, string> = {};
  for (const [index, name] of columns.entries()) {
    const cell = cells[index] ?? "";
    if (MISSING.includes(cell)) missing[name] = cell;
    if (cell !== "" && !MISSING.includes(cell)) members[name] = cell;
    else if (name === "token") members[name] = "";
  }
  return { members, missing };
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
