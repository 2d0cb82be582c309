/** The interface of an SQL database. */

import { yieldToRequests } from "../../async/yield.ts";

/** The value of a column. Numbers are safe integers. */
export type Value = string | number | null;

export type Row = Readonly<Record<string, Value>>;

/** A statement in the SQL that all engines share. `$1`, `$2` … stand for its values. */
export interface Statement {
  readonly text: string;
  /** A list has the values of a column: see {@linkcode Database.rowsOf}. */
  readonly values?: readonly (Value | readonly Value[])[];
}

/** The options of {@linkcode Database.transact}. */
export interface TransactionOptions {
  /** Whether to skip the other statements if the first one returns no row. */
  readonly isConditional?: boolean;
  /**
   * Whether the transaction is as durable as the settings of the server make it, and on SQLite on
   * disk, even if others of the database need not be.
   */
  readonly isSynced?: boolean;
}

/** The type of a column, for engines that require it. */
export type ColumnType = "uuid" | "text" | "bigint";

/** A connection to a database. Methods throw {@linkcode StorageError} if the engine fails. */
export interface Database {
  /** The time in milliseconds since the epoch, as an SQL expression. */
  readonly currentTime: string;

  /** The number of rows per statement that is fastest to add or look up. */
  readonly batch: number;

  /** Returns an SQL expression of the UTC day of an instant, e.g. `2027-01-31`. */
  dayOf(instant: string): string;

  /** Returns an SQL expression that aggregates rows: JSON with a list of columns for each of them. */
  listOf(columns: readonly string[]): string;

  /**
   * Returns rows as a query to insert or select from, in the form that the engine reads fastest.
   * The statement that contains it can have no other values.
   */
  rowsOf(types: readonly ColumnType[], rows: readonly (readonly Value[])[]): Required<Statement>;

  /** Runs a statement that reads. */
  query(statement: Statement): Promise<readonly Row[]>;

  /**
   * Does the same as {@linkcode query}, but waits for changes in progress first: a killed process
   * may have left a commit in flight.
   *
   * @param table A table with one row that every change updates.
   */
  queryAfterChanges(statement: Statement, table: string): Promise<readonly Row[]>;

  /** Runs statements in one transaction. Returns the rows of each statement. */
  transact(
    statements: readonly Statement[],
    options?: TransactionOptions,
  ): Promise<readonly (readonly Row[])[]>;
}

/** The number of rows in a page. */
const PAGE_ROWS = 1_000;

/**
 * Reads rows page by page, so that neither memory nor a transaction has to hold them all. Each page
 * starts where the one before ended.
 *
 * @param select Returns the statement that reads at most `limit` rows: the first ones, or those
 *   after a row.
 */
export async function* pages(
  database: Database,
  select: (after: Row | undefined, limit: number) => Statement,
): AsyncGenerator<Row> {
  let last: Row | undefined;
  do {
    const rows = await database.query(select(last, PAGE_ROWS));
    yield* rows;
    last = rows.length === PAGE_ROWS ? rows.at(-1) : undefined;
    if (last !== undefined) await yieldToRequests();
  } while (last !== undefined);
}

/** Divides rows into chunks of `size` at most. */
export function chunksOf<T>(rows: readonly T[], size: number): T[][] {
  const count = Math.ceil(rows.length / size);
  return Array.from({ length: count }, (_, at) => rows.slice(at * size, (at + 1) * size));
}
