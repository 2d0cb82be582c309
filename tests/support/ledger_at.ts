/** Ledgers whose database has a clock of the test's. */

import type { Database, Statement } from "../../lib/database/sql/database.ts";
import { SqliteDatabase } from "../../lib/database/sqlite/database.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { Ledger } from "../../lib/usage/record/ledger.ts";
import { LEDGER } from "../../lib/usage/record/schema.ts";

/** Stands in every statement for the time at which it is run. */
const CLOCK = "(the clock of the test)";

/**
 * Returns the ledger in a database to which a clock is added.
 *
 * @param clock Returns the time in milliseconds since the epoch, each time that a statement asks.
 */
export function ledgerAt(database: Database, clock: () => number): Ledger {
  const dated = (statement: Statement): Statement => {
    const text = statement.text.replaceAll(CLOCK, () => `CAST(${clock()} AS bigint)`);
    return { ...statement, text };
  };
  const atClock: Database = {
    currentTime: CLOCK,
    batch: database.batch,
    dayOf: (instant) => database.dayOf(instant),
    listOf: (columns) => database.listOf(columns),
    rowsOf: (...args) => database.rowsOf(...args),
    query: (statement) => database.query(dated(statement)),
    queryAfterChanges: (statement, table) => database.queryAfterChanges(dated(statement), table),
    transact: (statements, options) => database.transact(statements.map(dated), options),
  };
  return new Ledger(atClock);
}

/** Opens an empty database in memory, for ledgers. */
export async function openLedgerDatabase(): Promise<Database & AsyncDisposable> {
  const options = { schema: LEDGER, synchronous: "NORMAL", timeout: 0 } as const;
  const database = await SqliteDatabase.open(":memory:", { ...options, runtime: DENO_RUNTIME });
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}
