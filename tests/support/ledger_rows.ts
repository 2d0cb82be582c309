/** Rows in a ledger, written as a server's flush writes them. */

import type { LedgerRow } from "../../lib/storage/ledger/records.ts";
import type { Ledger } from "../../lib/storage/ledger/ledger.ts";

/** Adds rows, by a server that registers and stops at their latest time. */
export async function addRows(
  ledger: Pick<Ledger, "declare" | "add">,
  rows: readonly LedgerRow[],
): Promise<void> {
  const at = Math.max(...rows.map(({ last }) => last));
  const own = { server: crypto.randomUUID(), policies: {}, from: at, until: at, sequence: 0 };
  await ledger.declare([own]);
  await ledger.add({ rows, until: at, end: "stopped" }, own);
}
