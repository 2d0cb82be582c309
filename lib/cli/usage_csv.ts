/**
 * The ledger as CSV (RFC 4180).
 */

import type { UsageRow } from "../storage/ledger.ts";

const NAMES = ["day", "route", "method", "phase", "status", "impact", "client"] as const;
const COLUMNS = [...NAMES, "calls", "first", "last"];

/** A line for each row of the ledger, after one of names. */
export async function* usageCsv(rows: AsyncIterable<UsageRow>): AsyncGenerator<string> {
  yield COLUMNS.join(",");
  for await (const row of rows) {
    const names = NAMES.map((name) => row[name]);
    const instants = [row.first, row.last].map((at) => new Date(at).toISOString());
    yield [...names, row.calls, ...instants].map(cell).join(",");
  }
}

/** Quoted where needed; what a spreadsheet would take for a formula is marked as text. */
function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
