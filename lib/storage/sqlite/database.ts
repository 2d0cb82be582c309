/**
 * A SQLite database in a file, which may be removed, replaced or overwritten at any time. SQLite
 * does not notice and continues with the old file, so the file is checked regularly.
 */

import type { StatementSync } from "node:sqlite";
import type { ColumnType, Database, Row, Statement, Value } from "../sql/database.ts";
import { repeat } from "../background.ts";
import { StorageError } from "../storage.ts";
import { Connection, type ConnectionOptions, MEMORY } from "./connection.ts";
import { isBusy, retryWhileBusy } from "./lock.ts";
import { folderOf } from "./path.ts";

/** Milliseconds between checks of the file, while it is used and while it is idle. */
const [INSPECTION, IDLE_INSPECTION] = [50, 500];

/** Milliseconds in which every process notices that a file is gone, and releases its log. */
const SETTLING = 2 * IDLE_INSPECTION;

/** Milliseconds that opening waits for a lock, e.g. while the tables are created. */
const OPENING = 30_000;

/** Milliseconds that closing waits for readers of the log. */
const CLOSING = 1_000;

/** SQLite's primary result code for a rejected row. */
const SQLITE_CONSTRAINT = 19;

/** Missing from the types of Deno 2.9.6. */
interface MissingTypes {
  setReturnArrays(enabled: boolean): void;
}

/** How to use a database. */
export interface SqliteOptions extends ConnectionOptions {
  /** Milliseconds to retry while another process holds the lock. */
  readonly timeout: number;
}

/** A database file, reopened whenever it was replaced or changed from outside. */
export class SqliteDatabase implements Database {
  readonly driver = "sqlite";
  readonly batch = 20; // longer statements take longer to prepare, and are not cached
  readonly #path: string;
  readonly #options: SqliteOptions;
  /**
   * Texts from {@linkcode rowsOf}, by the numbers of rows and values; few, since batches are small.
   */
  readonly #rowTexts = new Map<string, string>();
  #connection: Connection | undefined;
  /** Why the connection, if there is one, must not be used. */
  #fault: unknown;
  #nextLook = 0;
  #openings = 0;
  #hasWritten = false;
  /** Stops the checks of an idle file. */
  #rest = () => {};

  private constructor(path: string, options: SqliteOptions) {
    this.#path = path;
    this.#options = options;
  }

  /**
   * Opens a file, creating it or migrating its schema if needed.
   *
   * @param path `:memory:` for a database that lasts as long as its object.
   * @throws {StorageError} When it cannot be opened, or belongs to another program or a later
   *   release.
   */
  static async open(path: string, options: SqliteOptions): Promise<SqliteDatabase> {
    const database = new SqliteDatabase(path, options);
    try {
      if (path !== MEMORY) await Deno.mkdir(folderOf(path), { recursive: true });
      const open = () => new Connection(path, options, true);
      database.#connection = await retryWhileBusy(OPENING, open);
    } catch (cause) {
      throw database.#faultOf("opened", cause);
    }
    // An idle process, too, must release a file that is gone.
    database.#rest = repeat(IDLE_INSPECTION, () => database.#inspect());
    return database;
  }

  /** How often the file was reopened; each time, its content may differ. */
  get openings(): number {
    return this.#openings;
  }

  /** @inheritdoc */
  rowsOf(_: readonly ColumnType[], rows: readonly (readonly Value[])[]): Required<Statement> {
    const values = rows.flat();
    const key = `${rows.length} ${values.length}`;
    let text = this.#rowTexts.get(key);
    if (text === undefined) { // building it takes as long as running the statement
      let at = 0;
      const list = rows.map((row) => `(${row.map(() => `$${++at}`).join(", ")})`);
      this.#rowTexts.set(key, text = `VALUES ${list.join(", ")}`);
    }
    return { text, values };
  }

  /** @inheritdoc */
  query({ text, values = [] }: Statement): Promise<readonly Row[]> {
    return retryWhileBusy(
      this.#options.timeout,
      () =>
        this.#run(
          "read",
          (connection) => connection.prepare(text).all(...values as Value[]) as Row[],
        ),
    );
  }

  /** @inheritdoc */
  queryAfterChanges(statement: Statement): Promise<readonly Row[]> {
    return this.query(statement); // a killed process leaves no commit in flight
  }

  /**
   * Reads one row synchronously, if there is one, as values only: a row with column names takes
   * half as long again.
   *
   * @param text A statement used with this method only.
   */
  get(text: string, ...values: (string | number)[]): Value[] | undefined {
    return this.#run("read", (connection) => {
      const statement = connection.prepare(text) as StatementSync & MissingTypes;
      statement.setReturnArrays(true);
      return statement.get(...values) as unknown as Value[] | undefined;
    });
  }

  /** @inheritdoc */
  transact(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    return retryWhileBusy(this.#options.timeout, () => {
      if (this.#connection !== undefined) this.#nextLook = 0; // check now: nothing must go into a file that is gone
      const rows = this.#run("written", (connection) => connection.commit(statements));
      this.#hasWritten = true;
      return rows;
    });
  }

  /**
   * Closes the file. After writes, the log is flushed to it first, so that the file can be copied
   * alone.
   */
  async close(): Promise<void> {
    this.#rest();
    if (this.#hasWritten) {
      try {
        await retryWhileBusy(
          CLOSING,
          () => this.#run("closed", (connection) => connection.emptyLog()),
        );
      } catch { // the next writer flushes it
      }
    }
    this.#connection?.close();
    this.#connection = undefined;
    this.#fault = new Error("It is closed");
    this.#nextLook = Infinity;
  }

  #run<T>(what: string, action: (connection: Connection) => T): T {
    this.#inspect();
    if (this.#connection === undefined || this.#fault !== undefined) {
      throw this.#faultOf(what, this.#fault);
    }
    try {
      return action(this.#connection);
    } catch (cause) {
      if (isDamage(cause)) { // reopen it, whatever the damage
        this.#connection.close();
        this.#connection = undefined;
        this.#nextLook = 0;
      }
      throw this.#faultOf(what, cause);
    }
  }

  /** Makes sure that the connection is to the current file, and that this is intact. */
  #inspect(): void {
    const now = performance.now();
    if (now < this.#nextLook) return;
    this.#nextLook = now + INSPECTION;
    const state = this.#connection?.compare();
    if (state === "same") {
      this.#fault = undefined;
      return;
    }
    if (state === "gone") {
      const isLogUsed = this.#connection?.leave();
      this.#connection = undefined;
      this.#fault = new Error("The opened file was removed or replaced");
      if (isLogUsed) {
        this.#nextLook = now + SETTLING;
        return;
      }
    }
    try {
      const opened = new Connection(this.#path, this.#options, false);
      this.#connection?.close(); // last: closing the last connection to a file deletes its log
      this.#connection = opened;
      this.#openings++;
      this.#fault = undefined;
    } catch (error) {
      // A damaged file stays open: closing would make SQLite flush the log to it.
      if (this.#connection === undefined || !isBusy(error)) this.#fault = error;
    }
  }

  #faultOf(what: string, cause: unknown): StorageError {
    const { name } = this.#options.schema;
    const fault = `the ${name} ${JSON.stringify(this.#path)} (DATABASE_URL) cannot be ${what}`;
    return new StorageError(this.driver, fault, { cause });
  }
}

/** Whether an error concerns the file, rather than a row or a lock. */
function isDamage(error: unknown): boolean {
  return !isBusy(error) && (Object(error).errcode & 0xff) !== SQLITE_CONSTRAINT;
}
