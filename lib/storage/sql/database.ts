/**
 * What the catalogue and the ledger ask of a database that speaks SQL.
 */

/** What is kept in a column; an integer is a safe one. */
export type Value = string | number | null;

/** A row, by the names of its columns. */
export type Row = Readonly<Record<string, Value>>;

/** A statement of the SQL that every engine here takes, with `$1`, `$2` … for its values. */
export interface Statement {
  readonly text: string;
  /** A list is that of a column; see {@linkcode Database.rowsOf}. */
  readonly values?: readonly (Value | readonly Value[])[];
}

/** What a column takes, in an engine that is strict about it. */
export type ColumnType = "uuid" | "text" | "bigint";

/** A connection to a database. Every method throws {@linkcode StorageError} when the engine fails. */
export interface Database {
  /** The engine's name, for messages. */
  readonly driver: string;

  /** How many rows a statement adds or looks up fastest. */
  readonly batch: number;

  /**
   * Rows as a query, to insert or to select from, in the form that the engine reads fastest. It is
   * all of its statement that has values.
   */
  rowsOf(types: readonly ColumnType[], rows: readonly (readonly Value[])[]): Required<Statement>;

  /** Runs a statement that reads. */
  query(statement: Statement): Promise<readonly Row[]>;

  /**
   * As {@linkcode query}, once no change of the catalogue is under way: one that is being committed
   * may be that of a process that was killed since.
   */
  queryAfterChanges(statement: Statement): Promise<readonly Row[]>;

  /** Runs statements as one transaction: all of them, or none. Gives the rows of each. */
  transact(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]>;
}

/** Rows that are read at a time where there may be very many. */
const PAGE = 1_000;

/**
 * Reads rows page by page, each page from where the last one ended, so that neither memory nor a
 * transaction has to hold all of them.
 *
 * @param select Makes the statement that reads at most `limit` rows after a row, or the first ones.
 */
export async function* pages(
  database: Database,
  select: (after: Row | undefined, limit: number) => Statement,
): AsyncGenerator<Row> {
  let last: Row | undefined;
  do {
    const rows = await database.query(select(last, PAGE));
    yield* rows;
    last = rows.length === PAGE ? rows.at(-1) : undefined;
    if (last !== undefined) await yieldToRequests();
  } while (last !== undefined);
}

/** Divides rows among statements. */
export function chunksOf<T>(rows: readonly T[], size: number): T[][] {
  const count = Math.ceil(rows.length / size);
  return Array.from({ length: count }, (_, at) => rows.slice(at * size, (at + 1) * size));
}

/** Lets requests be answered between two parts of long work. */
export function yieldToRequests(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
