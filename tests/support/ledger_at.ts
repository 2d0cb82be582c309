/** Ledgers whose database has a clock of the test's. */

import type { Database, Statement } from "../../lib/database/sql/database.ts";
import { SqliteDatabase } from "../../lib/database/sqlite/database.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { Ledger } from "../../lib/usage/record/ledger.ts";
import { LEDGER_OPTIONS } from "../../lib/usage/record/open_ledger.ts";

/** Stands in every statement for the time at which it is run. */
const CLOCK = "(the clock of the test)";

/** Returns the ledger in a database to which a clock is added. */
export function ledgerAt(database: Database, clock: () => number): Ledger {
  const dated = (statement: Statement): Statement => {
    return { ...statement, text: statement.text.replaceAll(CLOCK, String(clock())) };
  };
  return new Ledger({
    clock: CLOCK,
    batch: database.batch,
    rowsOf: (...args) => database.rowsOf(...args),
    query: (statement) => database.query(dated(statement)),
    queryAfterChanges: (statement, table) => database.queryAfterChanges(dated(statement), table),
    transact: (statements, options) => database.transact(statements.map(dated), options),
  });
}

/** Opens an empty database in memory, for ledgers. */
export async function openLedgerDatabase(): Promise<Database & AsyncDisposable> {
  const options = { ...LEDGER_OPTIONS, runtime: DENO_RUNTIME, timeout: 0 };
  const database = await SqliteDatabase.open(":memory:", options);
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}
