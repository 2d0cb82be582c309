/**
 * A SQLite database in a file, which may be taken away, replaced or overwritten at any time. SQLite
 * itself does not notice, and goes on with what it has: so the file is looked at again and again.
 */

import type { StatementSync } from "node:sqlite";
import type { ColumnType, Database, Row, Statement, Value } from "../sql/database.ts";
import { repeat } from "../background.ts";
import { StorageError } from "../storage.ts";
import { Connection, type ConnectionOptions, MEMORY } from "./connection.ts";
import { isBusy, retryWhileBusy } from "./lock.ts";
import { folderOf } from "./path.ts";

/** Milliseconds between two looks at the file, while it is used and while it is not. */
const [INSPECTION, IDLE_INSPECTION] = [50, 500];

/** Milliseconds in which every process sees that a file is gone, and lets go of its log. */
const SETTLING = 2 * IDLE_INSPECTION;

/** Milliseconds that opening waits for whoever holds the lock, e.g. to make the tables. */
const OPENING = 30_000;

/** Milliseconds that closing waits for those who read from the log. */
const CLOSING = 1_000;

/** SQLite's primary result code for a row that is refused. */
const SQLITE_CONSTRAINT = 19;

/** What the types of Deno 2.9.6 lack. */
interface MissingTypes {
  setReturnArrays(enabled: boolean): void;
}

/** How a database is used. */
export interface SqliteOptions extends ConnectionOptions {
  /** Milliseconds for which it is tried again, while somebody else holds the lock. */
  readonly timeout: number;
}

/** A file that is opened again whenever it is another, or was changed by anybody. */
export class SqliteDatabase implements Database {
  readonly driver = "sqlite";
  readonly batch = 20; // a longer statement takes longer to prepare, and is not kept
  readonly #path: string;
  readonly #options: SqliteOptions;
  /** Of {@linkcode rowsOf}, by the numbers of rows and values: few, as batches are. */
  readonly #rowTexts = new Map<string, string>();
  #connection: Connection | undefined;
  /** Why the connection, if there is one, is not to be used. */
  #fault: unknown;
  #nextLook = 0;
  #openings = 0;
  #hasWritten = false;
  /** Ends the looks at the file while it is not used. */
  #rest = () => {};

  private constructor(path: string, options: SqliteOptions) {
    this.#path = path;
    this.#options = options;
  }

  /**
   * Opens a file, and makes it or moves its schema forward, if need be.
   *
   * @param path `:memory:` for one that lasts as long as its object.
   * @throws {StorageError} When it cannot be opened, is another program's, or a later release's.
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
    // Also a process that nobody asks for anything must let go of a file that is gone.
    database.#rest = repeat(IDLE_INSPECTION, () => database.#inspect());
    return database;
  }

  /** How often the file was opened again: each time, it may say something else than before. */
  get openings(): number {
    return this.#openings;
  }

  /** @inheritdoc */
  rowsOf(_: readonly ColumnType[], rows: readonly (readonly Value[])[]): Required<Statement> {
    const values = rows.flat();
    const key = `${rows.length} ${values.length}`;
    let text = this.#rowTexts.get(key);
    if (text === undefined) { // making it takes as long as running the statement
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
    return this.query(statement); // a transaction ends with its process
  }

  /**
   * Reads one row, if there is one, at once: its values alone, since a row with the names of its
   * columns takes half as long again.
   *
   * @param text Of a statement for this method only.
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
      if (this.#connection !== undefined) this.#nextLook = 0; // nothing goes into a file that is gone
      const rows = this.#run("written", (connection) => connection.commit(statements));
      this.#hasWritten = true;
      return rows;
    });
  }

  /** Closes the file. Whoever wrote to it leaves it whole without its log, for those who copy it. */
  async close(): Promise<void> {
    this.#rest();
    if (this.#hasWritten) {
      try {
        await retryWhileBusy(
          CLOSING,
          () => this.#run("closed", (connection) => connection.emptyLog()),
        );
      } catch { // the next one that writes does it
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
      if (isDamage(cause)) { // whatever it is: open it again
        this.#connection.close();
        this.#connection = undefined;
        this.#nextLook = 0;
      }
      throw this.#faultOf(what, cause);
    }
  }

  /** Sees to it that the connection is to the file that is there now, and that this is sound. */
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
      this.#fault = new Error("It is not the file any more that was opened");
      if (isLogUsed) {
        this.#nextLook = now + SETTLING;
        return;
      }
    }
    try {
      const opened = new Connection(this.#path, this.#options, false);
      this.#connection?.close(); // last: a file that nobody has open loses its log
      this.#connection = opened;
      this.#openings++;
      this.#fault = undefined;
    } catch (error) {
      // A damaged file stays open, or SQLite would write what is in the log to it.
      if (this.#connection === undefined || !isBusy(error)) this.#fault = error;
    }
  }

  #faultOf(what: string, cause: unknown): StorageError {
    const { name } = this.#options.schema;
    const fault = `the ${name} ${JSON.stringify(this.#path)} (DATABASE_URL) cannot be ${what}`;
    return new StorageError(this.driver, fault, { cause });
  }
}

/** Whether an error is about the file, rather than about a row or a lock. */
function isDamage(error: unknown): boolean {
  return !isBusy(error) && (Object(error).errcode & 0xff) !== SQLITE_CONSTRAINT;
}
