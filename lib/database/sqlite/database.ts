/**
 * A SQLite database in a file. SQLite does not notice when the file is removed or replaced, and
 * goes on using a file that nobody else sees. So the file's device and inode are checked in the
 * background. Once they differ, every use fails until the process is restarted.
 *
 * Only SQLite opens the file in this process: when a process closes any descriptor of a file, the
 * system releases all locks (fcntl) that the process holds on the file.
 */

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { waitFor } from "../../async/abort.ts";
import { type OpenOptions, settingOf } from "../open_options.ts";
import { MEMORY } from "../place.ts";
import type {
  ColumnType,
  Database,
  Row,
  Statement,
  TransactionOptions,
  Value,
} from "../sql/database.ts";
import type { Schema } from "../sql/schema.ts";
import { NotCreatedError, StorageError } from "../../errors/storage_error.ts";
import { copyAside, isThere, needsWriting } from "./copy.ts";
import { createTables, inTransaction, requireTables } from "./creation.ts";
import { isBusy, retryWhileBusy } from "./lock.ts";
import { isMissing, type SqliteRuntime } from "./runtime.ts";

/** Milliseconds to wait for a lock on opening, e.g. while another process creates the tables. */
const OPEN_TIMEOUT_MS = 30_000;

/**
 * SQLite's result code if the index of the log cannot grow, because the disk or a quota is full. Its
 * message is "disk I/O error".
 */
const NO_ROOM_FOR_INDEX = 4_874;

/** How to open a file to read it that SQLite may change, such as a copy. */
const WRITABLE = { isReadOnly: false, mustExist: true };

const GONE = "The file was removed or replaced since it was opened: put the right one in place, " +
  "and start again";

/**
 * Connections to files that are gone. They are never closed: on closing the last one, SQLite would
 * delete the log beside the file that has replaced theirs.
 */
const abandoned: DatabaseSync[] = [];

export interface SqliteOptions extends OpenOptions {
  readonly schema: Schema;
  readonly runtime: SqliteRuntime;
  /** With `NORMAL`, a power failure can lose the last transactions; with `FULL`, none. */
  readonly synchronous: "FULL" | "NORMAL";
  /** Milliseconds to retry while another process holds the lock. */
  readonly timeout: number;
}

export class SqliteDatabase implements Database {
  readonly currentTime = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";
  readonly batch = 20; // longer statements are slower to prepare, and are not cached
  readonly #path: string;
  readonly #options: SqliteOptions;
  readonly #statements = new Map<string, StatementSync>();
  #connection: DatabaseSync | undefined;
  /** The identity of the file that was opened; `undefined` in memory. */
  #file: Awaited<ReturnType<SqliteRuntime["stat"]>> | undefined;
  /** The path of the log (WAL). It lies beside the file, even if `#path` is a symbolic link. */
  #log = "";
  #isGone = false;
  #checking: Promise<void> | undefined;
  #stopChecking = () => {};
  /** Removes the copy that is read, if one is. */
  #removeCopy: () => Promise<void> = () => Promise.resolve();

  private constructor(path: string, options: SqliteOptions) {
    this.#path = path;
    this.#options = options;
  }

  /**
   * Opens a file, creating it if needed.
   *
   * @param path `:memory:` for a database that lasts as long as its object.
   * @throws {StorageError} If the file cannot be opened, or belongs to another program or release.
   */
  static async open(path: string, options: SqliteOptions): Promise<SqliteDatabase> {
    const database = new SqliteDatabase(path, options);
    try {
      if (path !== MEMORY) await requirePlace(path, options);
      database.#connection = await database.#connect();
      if (path !== MEMORY) database.#file = await options.runtime.stat(path);
      const [main] = await database.query({ text: "SELECT file FROM pragma_database_list" });
      database.#log = `${main?.["file"]}-wal`;
    } catch (cause) {
      database.#connection?.close();
      await database.#removeCopy();
      throw database.#faultOf("opened", cause);
    }
    const timer = setInterval(() => database.#checkFile(), 500);
    timer.unref();
    database.#stopChecking = () => clearInterval(timer);
    return database;
  }

  async #connect(): Promise<DatabaseSync> {
    const [path, options] = [this.#path, this.#options];
    const connecting = (...args: Parameters<typeof connect>) =>
      this.#retry(OPEN_TIMEOUT_MS, () => connect(...args));
    if (!options.isReadOnly || path === MEMORY) return await connecting(path, options);
    // The index is there if a process uses the file. Without a log, there is nothing to change.
    const [isUsed, hasLog] = await Promise.all(
      ["-shm", "-wal"].map((end) => isThere(path + end, options.runtime)),
    );
    if (isUsed || !hasLog) {
      try {
        return await connecting(path, isUsed ? options : { ...options, ...WRITABLE });
      } catch (error) {
        if (!needsWriting(error)) throw error;
      }
    }
    const copy = await copyAside(path, options.runtime);
    this.#removeCopy = copy.remove;
    return await connecting(copy.path, { ...options, ...WRITABLE });
  }

  dayOf(instant: string): string {
    return `date(${instant} / 1000, 'unixepoch')`;
  }

  listOf(columns: readonly string[]): string {
    return `json_group_array(json_array(${columns.join(", ")}))`;
  }

  rowsOf(_: readonly ColumnType[], rows: readonly (readonly Value[])[]): Required<Statement> {
    let at = 0;
    const list = rows.map((row) => `(${row.map(() => `$${++at}`).join(", ")})`);
    return { text: `VALUES ${list.join(", ")}`, values: rows.flat() };
  }

  query(statement: Statement): Promise<readonly Row[]> {
    const read = (connection: DatabaseSync) => this.#rowsFrom(connection, statement);
    return this.#retry(this.#options.timeout, () => this.#run("read", read));
  }

  queryAfterChanges(statement: Statement): Promise<readonly Row[]> {
    return this.query(statement); // a killed process leaves no commit in flight
  }

  /** Returns the first row that a statement reads. Fails rather than waits for a lock. */
  read(text: string, ...values: Value[]): Promise<Row | undefined> {
    const get = (connection: DatabaseSync) => this.#prepare(connection, text).get(...values);
    return new Promise((resolve) => resolve(this.#run("read", get) as Row | undefined));
  }

  async transact(
    statements: readonly Statement[],
    { isConditional = false, isSynced = false }: TransactionOptions = {},
  ): Promise<readonly (readonly Row[])[]> {
    await this.#checkFile(); // a write to a file that is gone would be lost
    const commit = (connection: DatabaseSync) =>
      inTransaction(connection, () => {
        const results: Row[][] = [];
        for (const statement of statements) {
          if (isConditional && results[0]?.length === 0) break;
          results.push(this.#rowsFrom(connection, statement));
        }
        return results;
      });
    const results = await this.#retry(this.#options.timeout, () => this.#run("written", commit));
    if (isSynced) await this.#syncLog();
    return results;
  }

  async close(): Promise<void> {
    this.#stopChecking();
    await this.#checkFile();
    const connection = this.#connection;
    this.#connection = undefined;
    this.#statements.clear();
    if (this.#isGone && connection !== undefined) abandoned.push(connection);
    else connection?.close();
    await this.#removeCopy();
  }

  /** Returns a prepared statement, if possible from the cache. */
  #prepare(connection: DatabaseSync, text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = connection.prepare(text.replaceAll(/\$(?=\d)/g, "?"));
      if (text.length <= 5_000) this.#statements.set(text, statement); // longer ones vary
    }
    return statement;
  }

  #rowsFrom(connection: DatabaseSync, { text, values = [] }: Statement): Row[] {
    return this.#prepare(connection, text).all(...values as Value[]) as Row[];
  }

  /**
   * Syncs the log (WAL) without blocking the thread that serves. Without a log, the commit has
   * synced the file itself. Closing the log here releases no lock, because SQLite holds none on it.
   */
  async #syncLog(): Promise<void> {
    if (this.#file === undefined) return;
    try {
      await this.#options.runtime.sync(this.#log);
    } catch (cause) {
      if (!isMissing(cause)) throw this.#faultOf("synced to disk", cause);
    }
  }

  #retry<T>(limit: number, action: () => T): Promise<T> {
    const { schema: { name }, signal, onWait } = this.#options;
    const what = `the ${name} (${settingOf(this.#options)}), which another process is changing`;
    return waitFor(what, retryWhileBusy(limit, action, signal), { onWait });
  }

  #run<T>(what: string, action: (connection: DatabaseSync) => T): T {
    if (this.#connection === undefined || this.#isGone) {
      throw this.#faultOf(what, new Error(this.#isGone ? GONE : "It is closed"));
    }
    try {
      return action(this.#connection);
    } catch (cause) {
      throw this.#faultOf(what, cause);
    }
  }

  /** Checks whether the file is still the one that was opened. */
  #checkFile(): Promise<void> {
    return this.#checking ??= this.#compareFiles().finally(() => this.#checking = undefined);
  }

  async #compareFiles(): Promise<void> {
    if (this.#file === undefined || this.#isGone) return;
    try {
      const { dev, ino } = await this.#options.runtime.stat(this.#path);
      this.#isGone = dev !== this.#file.dev || ino !== this.#file.ino;
    } catch (error) { // any other error proves nothing
      this.#isGone = isMissing(error);
    }
  }

  #faultOf(what: string, reason: unknown): StorageError {
    const isFull = Object(reason).errcode === NO_ROOM_FOR_INDEX;
    const cause = isFull ? new Error("The disk is full", { cause: reason }) : reason;
    const { name } = this.#options.schema;
    const place = `${JSON.stringify(this.#path)} (${settingOf(this.#options)})`;
    const fault = `the ${name} ${place} cannot be ${what}`;
    return new StorageError("sqlite", fault, { cause, isLasting: !mayPass(reason) });
  }
}

/** SQLite's primary result codes for faults that may pass: no memory, an I/O error, a full disk. */
const PASSING = [7, 10, 13];

/** Returns whether waiting may mend a fault. */
function mayPass(error: unknown): boolean {
  const { cause, errcode } = Object(error);
  return isBusy(error) || (cause === undefined ? PASSING.includes(errcode & 0xff) : mayPass(cause));
}

/** @throws {Error} If the file cannot be opened, or belongs to another program or release. */
function connect(
  path: string,
  { schema, synchronous, runtime, isReadOnly = false, ...options }: SqliteOptions,
): DatabaseSync {
  const database = new runtime.DatabaseSync(path, { timeout: 0, readOnly: isReadOnly });
  try {
    // Not by exec(), whose errors have no code in Deno 2.9.6.
    database.prepare(`PRAGMA synchronous = ${synchronous}`).all();
    database.prepare("PRAGMA cache_size = -16384").all(); // in kB; the default slows imports down
    if (isReadOnly) requireTables(database, schema, options);
    else createTables(database, schema, options);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Makes sure that a file that must exist does, or that the folder of any other exists. */
async function requirePlace(path: string, options: SqliteOptions): Promise<void> {
  const { mustExist, isReadOnly, runtime } = options;
  if (!mustExist && !isReadOnly) {
    await runtime.ensureFolderOf(path);
    return;
  }
  await runtime.stat(path).catch((error) => {
    throw isMissing(error) ? new NotCreatedError(settingOf(options)) : error;
  });
}
