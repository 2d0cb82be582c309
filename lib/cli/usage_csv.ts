/**
 * The ledger as CSV (RFC 4180).
 */

import type { UsageRow } from "../storage/ledger.ts";

const NAMES = ["day", "route", "method", "phase", "status", "impact", "client"] as const;
const COLUMNS = [...NAMES, "calls", "first", "last"];

/** Yields a header line, then a line for each row of the ledger. */
export async function* usageCsv(rows: AsyncIterable<UsageRow>): AsyncGenerator<string> {
  yield COLUMNS.join(",");
  for await (const row of rows) {
    const names = NAMES.map((name) => row[name]);
    const instants = [row.first, row.last].map((at) => new Date(at).toISOString());
    yield [...names, row.calls, ...instants].map(cell).join(",");
  }
}

/** Quotes a cell where needed, and marks as text what a spreadsheet would treat as a formula. */
function cell(value: string | number): string {
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
