/**
 * A SQLite database in a file. SQLite's calls hold the thread, so none ever waits for a lock: what
 * is refused is tried again later.
 */

import { DatabaseSync, type StatementSync } from "node:sqlite";
import { dirname } from "node:path";
import type { Database, Row, Statement } from "../sql/database.ts";
import { StorageError } from "../storage.ts";
import type { Schema } from "./schema.ts";

/** Milliseconds between two looks whether the file is still the one that was opened. */
const INSPECTION = 500;

/** Milliseconds until what another process's lock refused is tried again. */
const RETRY = 20;

/** Milliseconds that opening waits for the lock of whoever creates the file. */
const OPENING = 10_000;

/** Characters of the longest statement that is kept prepared; longer ones vary in length. */
const MAX_PREPARED = 1_000;

/** SQLite's result code for a lock that somebody else holds. */
const SQLITE_BUSY = 5;

/** How a database is used. */
export interface SqliteOptions {
  readonly schema: Schema;
  /** What a loss of power may cost: with `NORMAL` the last transactions, with `FULL` nothing. */
  readonly synchronous: "FULL" | "NORMAL";
  /** Milliseconds for which a transaction is tried again while somebody else holds the lock. */
  readonly patience: number;
}

/** What tells a file from another in its place, and whether it was written to. */
type Identity = Pick<Deno.FileInfo, "dev" | "ino" | "size"> & { readonly mtime: number };

/** A file that is opened again whenever it is another, or was changed by anybody. */
export class SqliteDatabase implements Database {
  readonly driver = "sqlite";
  readonly #path: string;
  readonly #options: SqliteOptions;
  #connection: DatabaseSync | undefined;
  readonly #statements = new Map<string, StatementSync>();
  #identity: Identity | undefined;
  #inspectedAt = -Infinity;
  #fault: unknown;
  #hasWritten = false;
  #isClosed = false;

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
      if (path !== ":memory:") await Deno.mkdir(dirname(path), { recursive: true });
      await patiently(OPENING, () => database.#connect(true));
    } catch (cause) {
      throw database.#faultOf("opened", cause);
    }
    return database;
  }

  /** @inheritdoc */
  // deno-lint-ignore require-await -- what is thrown becomes a rejection
  async query({ text, values = [] }: Statement): Promise<readonly Row[]> {
    return this.#run("read", () => this.#prepare(text).all(...values) as Row[]);
  }

  /** Reads one row, if there is one, at once. */
  get(text: string, ...values: (string | number)[]): Row | undefined {
    return this.#run("read", () => this.#prepare(text).get(...values) as Row | undefined);
  }

  /** @inheritdoc */
  transact(statements: readonly Statement[]): Promise<readonly (readonly Row[])[]> {
    const commit = () => this.#run("written", () => this.#commit(statements));
    return patiently(this.#options.patience, commit);
  }

  /** Closes the file. Whoever wrote to it leaves it whole without its log, for those who copy it. */
  close(): void {
    if (this.#hasWritten) {
      try {
        this.#connection?.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch { // the next one that writes does it
      }
    }
    this.#disconnect();
    this.#isClosed = true;
  }

  #commit(statements: readonly Statement[]): Row[][] {
    this.#prepare("BEGIN IMMEDIATE").run();
    try {
      const rows = statements.map(({ text, values = [] }) =>
        this.#prepare(text).all(...values) as Row[]
      );
      this.#prepare("COMMIT").run();
      this.#hasWritten = true;
      return rows;
    } catch (error) {
      if (this.#connection?.isTransaction) this.#prepare("ROLLBACK").run();
      throw error;
    }
  }

  #run<T>(what: string, action: () => T): T {
    try {
      this.#inspect();
      return action();
    } catch (cause) {
      if (!isBusy(cause)) this.#identity = undefined; // whatever it was: open it again
      throw this.#faultOf(what, cause);
    }
  }

  /** Sees to it that the connection is to the file that is there now. */
  #inspect(): void {
    const now = performance.now();
    if (now - this.#inspectedAt >= INSPECTION && !this.#isClosed) {
      this.#inspectedAt = now;
      try {
        const identity = identityOf(this.#path);
        if (!isSame(identity, this.#identity)) {
          this.#disconnect();
          this.#connect(false);
        }
      } catch (error) {
        this.#disconnect();
        this.#fault = error;
      }
    }
    if (this.#connection === undefined) throw this.#fault;
  }

  #connect(mayCreate: boolean): void {
    const { schema, synchronous } = this.#options;
    const connection = new DatabaseSync(this.#path, { timeout: 0 });
    try {
      connection.exec(`PRAGMA synchronous = ${synchronous}`);
      migrate(connection, schema, mayCreate);
      this.#identity = identityOf(this.#path);
      this.#connection = connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  #disconnect(): void {
    this.#statements.clear();
    this.#connection?.close();
    this.#connection = undefined;
    this.#fault = new Error("It is closed");
  }

  #prepare(text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      const connection = this.#connection as DatabaseSync;
      statement = connection.prepare(text.replaceAll(/\$(?=\d)/g, "?"));
      if (text.length <= MAX_PREPARED) this.#statements.set(text, statement);
    }
    return statement;
  }

  #faultOf(what: string, cause: unknown): StorageError {
    if (cause instanceof StorageError) return cause;
    const { name } = this.#options.schema;
    const fault = `the ${name} ${JSON.stringify(this.#path)} (DATABASE_URL) cannot be ${what}`;
    return new StorageError(this.driver, fault, { cause });
  }
}

/** Makes the tables, or brings them to the version that this program knows. */
function migrate(connection: DatabaseSync, schema: Schema, mayCreate: boolean): void {
  const { name, applicationId, steps } = schema;
  if (schemaOf(connection, schema) === steps.length) return;
  if (!mayCreate) throw new Error(`It holds no ${name} any more`);
  if (schemaOf(connection, schema) === 0) connection.prepare("PRAGMA journal_mode = WAL").get();
  connection.prepare("BEGIN IMMEDIATE").run();
  try {
    for (const step of steps.slice(schemaOf(connection, schema))) connection.exec(step);
    connection.exec(`PRAGMA application_id = ${applicationId}`);
    connection.exec(`PRAGMA user_version = ${steps.length}`);
    connection.prepare("COMMIT").run();
  } catch (error) {
    if (connection.isTransaction) connection.exec("ROLLBACK");
    throw error;
  }
}

/** The version of the tables in a file; 0 for none. */
function schemaOf(connection: DatabaseSync, { name, applicationId, steps }: Schema): number {
  const pragma = (name: string) => Number(connection.prepare(`PRAGMA ${name}`).get()?.[name]);
  const [id, version] = [pragma("application_id"), pragma("user_version")];
  if (id === applicationId) {
    if (version <= steps.length) return version;
    const fault = `It has version ${version} of the ${name}'s schema`;
    throw new Error(`${fault}, and this release knows ${steps.length} at most: run a later one`);
  }
  const { tables } = {
    ...connection.prepare("SELECT count(*) AS tables FROM sqlite_master").get(),
  };
  if (id !== 0 || version !== 0 || tables !== 0) {
    throw new Error(`It is not a ${name} of media-head: choose another path, or move it away`);
  }
  return 0;
}

/** Tries an action until it succeeds, as long as it fails for a lock that somebody else holds. */
async function patiently<T>(limit: number, action: () => T): Promise<T> {
  const end = performance.now() + limit;
  while (true) {
    try {
      return action();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

function isBusy(error: unknown): boolean {
  const { cause, errcode, message } = Object(error);
  if (cause !== undefined) return isBusy(cause);
  // What exec() and the constructor throw has no code in Deno 2.9.6.
  return errcode === SQLITE_BUSY || message === "database is locked";
}

function identityOf(path: string): Identity | undefined {
  if (path === ":memory:") return undefined;
  const { dev, ino, size, mtime } = Deno.statSync(path);
  return { dev, ino, size, mtime: Number(mtime) };
}

function isSame(one: Identity | undefined, other: Identity | undefined): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino && one?.size === other?.size &&
    one?.mtime === other?.mtime;
}
