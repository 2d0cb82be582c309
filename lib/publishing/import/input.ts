/** Reading what is imported: JSON objects, one per line, or CSV. */

import { RefusedError } from "../../errors/refused_error.ts";
import { type CsvHeader, readHeader, readRecord, separatorIn } from "./csv.ts";
import { joinRecords } from "./csv_records.ts";
import { type LineMembers, parseLine, shownLine } from "./valid_line.ts";
import { ARRAY_REMEDY, type ImportLine, MAX_LINE_BYTES, readLines } from "./lines.ts";

export interface ImportInput {
  /**
   * The lines before the first to import: in CSV, those that name the members. Refused lines need
   * them to be imported again.
   */
  readonly header: readonly ImportLine[];
  /** The lines to import, in groups that arrive together. Some may be blank. */
  readonly groups: AsyncIterable<readonly ImportLine[]>;
  /**
   * Parses a line. Returns `undefined` if it has no values.
   *
   * @throws {RefusedError} If it is invalid.
   */
  readonly parse: (bytes: Uint8Array) => LineMembers | undefined;
}

const FORMATS = "expected JSON objects, one per line, or CSV whose first line has names like " +
  "token,path";

/**
 * Finds out what is imported from its first lines.
 *
 * @throws {RefusedError} If it is of another format, or encoding.
 */
export async function readInput(
  chunks: AsyncIterable<Uint8Array<ArrayBuffer>>,
): Promise<ImportInput> {
  const groups = readLines(chunks);
  const seen: ImportLine[] = []; // without the blank lines
  const rest: ImportLine[][] = [];
  let isJson = false;
  let length = 0;
  while (!isJson && length < MAX_LINE_BYTES) {
    const { value: lines, done } = await groups.next();
    if (done) break;
    rest.push(lines);
    seen.push(...lines.filter((line) => !isBlank(line)));
    length += lines.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const [first] = seen;
    if (first === undefined) continue;
    requireText(first);
    const csv = headerIn(seen);
    if (csv !== undefined) {
      const last = csv.lines.at(-1)?.number ?? 0;
      const left = rest.map((lines) => lines.filter(({ number }) => number > last));
      return {
        header: csv.lines,
        groups: joinRecords(allOf(left, groups), csv.header.separator),
        parse: (bytes) => readRecord(bytes, csv.header),
      };
    }
    isJson = lines.some((line) => isObject(lineText(line)));
  }
  // Only the last object of an array would be right.
  const before = isJson ? seen.slice(0, seen.findIndex((line) => isObject(lineText(line)))) : seen;
  const wrong = before.find(isPartOfArray) ?? (isJson ? undefined : seen[0]);
  if (wrong !== undefined) throw refusalOf(wrong);
  return { header: [], groups: allOf(rest, groups), parse: parseJson };
}

function parseJson(bytes: Uint8Array): LineMembers {
  return { members: parseLine(bytes), missing: {} };
}

async function* allOf(first: ImportLine[][], others: AsyncIterable<ImportLine[]>) {
  yield* first;
  yield* others;
}

/** Returns whether a line has nothing but white space, or a byte order mark. */
export function isBlank({ bytes }: Pick<ImportLine, "bytes">): boolean {
  const isMarked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return bytes.subarray(isMarked ? 3 : 0).every((byte) => [0x20, 0x09, 0x0a, 0x0d].includes(byte));
}

/** Refuses UTF-16, by its byte order mark or the zero in its first character, and old line ends. */
function requireText(line: ImportLine): void {
  const [first, second] = line.bytes;
  const isMarked = first === 0xff && second === 0xfe || first === 0xfe && second === 0xff;
  if (isMarked || first === 0 || second === 0) {
    const remedy = 'In Windows PowerShell, write it with "| Out-File -Encoding utf8", not with ">"';
    throw new RefusedError(`The file is in UTF-16; expected UTF-8. ${remedy}`);
  }
  if (!lineText(line).trim().includes("\r")) return;
  throw new RefusedError("Lines end with CR alone; expected LF or CRLF");
}

/** Returns the header of CSV, with its lines, if the first lines have one. */
function headerIn(
  [first, second]: readonly ImportLine[],
): { readonly header: CsvHeader; readonly lines: ImportLine[] } | undefined {
  const separator = separatorIn(lineText(first));
  const lines = [first, ...separator === undefined ? [] : [second]].filter((line) =>
    line !== undefined
  );
  const header = readHeader(lineText(lines.at(-1)), separator);
  return header && { header, lines };
}

/** Whether a line begins an array, or is one of its objects, which a comma follows. */
function isPartOfArray(line: ImportLine): boolean {
  const text = lineText(line).trim();
  return text.startsWith("[") || text.endsWith(",") && isObject(text.slice(0, -1));
}

function isObject(text: string): boolean {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Returns the refusal of a file for a line that shows what is wrong with all of them. */
function refusalOf(line: ImportLine): RefusedError {
  const text = lineText(line).trim();
  const fault = `Line ${line.number} is ${shownLine(lineText(line))}; ${FORMATS}`;
  const remedy = text.startsWith("[")
    ? `. ${ARRAY_REMEDY}`
    : isPartOfArray(line)
    ? '. Without the commas at the ends of lines: sed "s/,[[:space:]]*$//"'
    : text.startsWith("{")
    ? ". For longer objects: jq --compact-output ."
    : "";
  return new RefusedError(fault + remedy);
}

function lineText(line: ImportLine | undefined): string {
  return new TextDecoder().decode(line?.bytes);
}
