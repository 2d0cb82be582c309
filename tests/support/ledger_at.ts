/** Ledgers whose database has a clock of the test's. */

import type { Database, Statement } from "../../lib/database/sql/database.ts";
import { SqliteDatabase } from "../../lib/database/sqlite/database.ts";
import { DENO_RUNTIME } from "../../lib/database/sqlite/deno_runtime.ts";
import { Ledger } from "../../lib/usage/record/ledger.ts";
import { LEDGER_OPTIONS } from "../../lib/usage/record/open_ledger.ts";

/** These stand in every statement for what is so when it is run. */
const [CLOCK, TIMELINE] = ["(the clock of the test)", "(the timeline of the test)"];

/**
 * Returns the ledger in a database to which a clock is added.
 *
 * @param clock Returns the time in milliseconds since the epoch, each time that a statement asks.
 * @param timeline Returns the timeline of the database, as an SQL expression. Default: its own.
 */
export function ledgerAt(...args: Parameters<typeof databaseAt>): Ledger {
  return new Ledger(databaseAt(...args));
}

/** Returns such a database. */
export function databaseAt(
  database: Database,
  clock: () => number,
  timeline: () => string = () => database.timeline,
): Database {
  const dated = (statement: Statement): Statement => {
    const { text } = statement;
    return {
      ...statement,
      text: text.replaceAll(CLOCK, () => String(clock())).replaceAll(TIMELINE, timeline),
    };
  };
  return {
    currentTime: CLOCK,
    timeline: TIMELINE,
    unlessLocked: database.unlessLocked,
    batch: database.batch,
    listOf: (columns) => database.listOf(columns),
    rowsOf: (...args) => database.rowsOf(...args),
    query: (statement) => database.query(dated(statement)),
    queryAfterChanges: (statement, table) => database.queryAfterChanges(dated(statement), table),
    write: (statement) => database.write(dated(statement)),
    transact: (statements, options) => database.transact(statements.map(dated), options),
  };
}

/** Opens an empty database in memory, for ledgers. */
export async function openLedgerDatabase(): Promise<Database & AsyncDisposable> {
  const options = { ...LEDGER_OPTIONS, runtime: DENO_RUNTIME, timeout: 0 };
  const database = await SqliteDatabase.open(":memory:", options);
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}
