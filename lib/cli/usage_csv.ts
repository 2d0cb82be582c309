/**
 * The ledger as CSV (RFC 4180).
 */

import type { Usage } from "../storage/ledger.ts";

const COLUMNS = ["day", "route", "method", "phase", "status", "client", "calls", "first", "last"];

/** One line for each line of the ledger, after one of names. */
export async function* usageCsv(lines: AsyncIterable<Usage>): AsyncGenerator<string> {
  yield COLUMNS.join(",");
  for await (const line of lines) {
    const { day, route, method, phase, status, client, calls } = line;
    const instants = [line.first, line.last].map((at) => new Date(at).toISOString());
    yield [day, route, method, phase, status, client, calls, ...instants].map(cell).join(",");
  }
}

/** Quoted where needed; what a spreadsheet would take for a formula is marked as text. */
function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
