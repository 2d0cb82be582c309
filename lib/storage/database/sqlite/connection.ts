/**
 * A connection to one database file.
 *
 * Only SQLite opens the file here: when a process closes any descriptor of a file, the system
 * releases all its locks (fcntl) on that file.
 */

import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Row, Statement, Value } from "../sql/database.ts";
import type { OpenOptions } from "../engine.ts";
import { createTables, hasTables } from "./creation.ts";
import { BUSY_MESSAGE } from "./lock.ts";
import type { Schema } from "./schema.ts";

/** Characters of the longest prepared statement to cache; longer ones vary in length. */
const MAX_PREPARED = 5_000;

/** The path of a database in memory. */
export const MEMORY = ":memory:";

/** How to open a file. */
export interface ConnectionOptions extends OpenOptions {
  readonly schema: Schema;
  /** What a power failure may lose: the last transactions with `NORMAL`, nothing with `FULL`. */
  readonly synchronous: "FULL" | "NORMAL";
}

/** An open database file. */
export class Connection {
  readonly #database: DatabaseSync;
  readonly #schema: Schema;
  readonly #statements = new Map<string, StatementSync>();

  /**
   * Opens a file, creating its tables if needed.
   *
   * @param path `:memory:` for a database that lasts as long as its object.
   * @throws {Error} When it cannot be opened, or belongs to another program or another release.
   */
  constructor(path: string, options: ConnectionOptions) {
    const { schema, synchronous } = options;
    this.#schema = schema;
    this.#database = new DatabaseSync(path, { timeout: 0 });
    try {
      this.#database.exec(`PRAGMA synchronous = ${synchronous}`);
      this.#database.exec("PRAGMA cache_size = -16384"); // kB; imports are slower with the default
      createTables(this.#database, schema, options);
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Returns a prepared statement, from the cache if possible. */
  prepare(text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#database.prepare(text.replaceAll(/\$(?=\d)/g, "?"));
      if (text.length <= MAX_PREPARED) this.#statements.set(text, statement);
    }
    return statement;
  }

  /** Runs statements in one transaction. */
  commit(statements: readonly Statement[]): Row[][] {
    this.prepare("BEGIN IMMEDIATE").run();
    try {
      const rows = statements.map(({ text, values = [] }) =>
        this.prepare(text).all(...values as Value[]) as Row[]
      );
      this.prepare("COMMIT").run();
      return rows;
    } catch (error) {
      if (this.#database.isTransaction) this.prepare("ROLLBACK").run();
      throw error;
    }
  }

  /** @throws {Error} When another release has changed the schema since the file was opened. */
  requireSchema(): void {
    hasTables(this.#database, this.#schema);
  }

  /**
   * Flushes the log to the file, and truncates it.
   *
   * @throws {Error} When another process uses it; see {@linkcode isBusy}.
   */
  emptyLog(): void {
    const { busy } = { ...this.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() };
    if (busy === 1) throw new Error(BUSY_MESSAGE); // SQLite itself throws none
  }

  /** Closes the file. */
  close(): void {
    this.#statements.clear();
    this.#database.close();
  }
}
