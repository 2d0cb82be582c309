/**
 * A connection to one database file.
 *
 * SQLite applies the log beside a file (`-wal`) to whatever file it finds there: if the file was
 * replaced, it would mix the pages of both. So before a file that is gone is closed, its log is
 * flushed to it.
 *
 * Only SQLite opens the file here: when a process closes any descriptor of a file, the system
 * releases all its locks (fcntl) on that file.
 */

import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Row, Statement, Value } from "../sql/database.ts";
import { busyError } from "./lock.ts";
import { migrate, schemaOf } from "./migration.ts";
import type { Schema } from "./schema.ts";

/** Characters of the longest prepared statement to cache; longer ones vary in length. */
const MAX_PREPARED = 5_000;

/** Statements in a transaction that mark an import, which more such transactions will follow. */
const MANY = 10;

/** Milliseconds by which a file system's timestamps may lag. */
const GRANULARITY = 20;

/** The path of a database in memory. */
export const MEMORY = ":memory:";

/** SQLite's primary result codes for a file that is too short or corrupt. */
const [SQLITE_IOERR, SQLITE_CORRUPT] = [10, 11];

/** How to open a file. */
export interface ConnectionOptions {
  readonly schema: Schema;
  /** What a power failure may lose: the last transactions with `NORMAL`, nothing with `FULL`. */
  readonly synchronous: "FULL" | "NORMAL";
}

/** An open database file. */
export class Connection {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #logPath: string;
  readonly #log: Deno.FileInfo | undefined;
  /** The file's state before it was opened; none in memory. */
  readonly #info: Deno.FileInfo | undefined;
  #isForMany = false;
  /** When the log last belonged to this file for certain, in milliseconds since the epoch. */
  #ownedAt = -Infinity;

  /**
   * Opens a file, creating or migrating its tables if needed.
   *
   * @param path `:memory:` for a database that lasts as long as its object.
   * @param mayCreate Whether to create a missing file.
   * @throws {Error} When it cannot be opened, or belongs to another program or a later release.
   */
  constructor(path: string, { schema, synchronous }: ConnectionOptions, mayCreate: boolean) {
    const info = path === MEMORY ? undefined : mayCreate ? infoOf(path) : Deno.statSync(path);
    if (!mayCreate) requireSound(path, schema); // also checks that it exists: SQLite would create it
    this.#path = path;
    this.#database = new DatabaseSync(path, { timeout: 0 });
    try {
      this.#database.exec(`PRAGMA synchronous = ${synchronous}`);
      migrate(this.#database, schema, mayCreate);
      this.prepare("SELECT count(*) FROM sqlite_master").get(); // creates the log
      this.#logPath = `${this.#database.location()}-wal`;
      this.#log = infoOf(this.#logPath);
      this.#info = info ?? (path === MEMORY ? undefined : Deno.statSync(path));
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
    if (!this.#isForMany && statements.length > MANY) this.#expectMany();
    this.prepare("BEGIN IMMEDIATE").run();
    try {
      const rows = statements.map(({ text, values = [] }) =>
        this.prepare(text).all(...values as Value[]) as Row[]
      );
      this.prepare("COMMIT").run();
      if (this.compare() !== "gone") this.#ownedAt = Date.now();
      return rows;
    } catch (error) {
      if (this.#database.isTransaction) this.prepare("ROLLBACK").run();
      throw error;
    }
  }

  /**
   * Enlarges the page cache, and flushes the log less often: consecutive transactions read and
   * write many of the same pages.
   */
  #expectMany(): void {
    this.#isForMany = true;
    this.#database.exec("PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 8000");
  }

  /** Compares the file at the path with the one that was opened. */
  compare(): "same" | "changed" | "gone" {
    if (this.#info === undefined) return "same"; // in memory
    const info = infoOf(this.#path);
    // New permissions count as gone, too: SQLite would not reopen a file that it has open.
    if (!isSame(info, this.#info) || info?.mode !== this.#info.mode) return "gone";
    this.#ownedAt = Math.max(this.#ownedAt, Date.now() - GRANULARITY);
    const { size, mtime } = this.#info;
    return info?.size === size && Number(info.mtime) === Number(mtime) ? "same" : "changed";
  }

  /**
   * Flushes the log to the file, and truncates it.
   *
   * @throws {Error} When another process uses it; see {@linkcode isBusy}.
   */
  emptyLog(): void {
    const { busy } = { ...this.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() };
    if (busy === 1) throw busyError();
  }

  /**
   * Closes a file that was removed or replaced.
   *
   * @returns Whether other processes may still be using its log.
   */
  leave(): boolean {
    const log = infoOf(this.#logPath);
    const isInPlace = log !== undefined && isSame(log, this.#log ?? log);
    const isUsed = isInPlace && log.size > 0;
    // Later writes may belong to the file that is there now.
    if (!isInPlace || isUsed && Number(log.mtime) <= this.#ownedAt) {
      try {
        this.emptyLog();
      } catch { // another process is flushing it
      }
    }
    this.close();
    return isUsed;
  }

  /** Closes the file. */
  close(): void {
    this.#statements.clear();
    this.#database.close();
  }
}

/**
 * Checks a file without its log, which SQLite would read first, by opening it under another name.
 * (A URL with `immutable=1` would do, but Deno 2.9.6 requires all permissions for URLs.)
 */
function requireSound(path: string, schema: Schema): void {
  const real = Deno.realPathSync(path);
  const alias = `${real}-check-${Deno.pid}`;
  const discard = () => ["", "-wal", "-shm"].forEach((end) => removeIfThere(alias + end));
  discard(); // a killed process with this id may have left them
  try {
    Deno.linkSync(real, alias);
  } catch { // some file systems have no links
    return;
  }
  try {
    const database = new DatabaseSync(alias, { readOnly: true });
    try {
      schemaOf(database, schema, false);
    } finally {
      database.close();
    }
  } catch (error) {
    // While another process flushes the log, the file alone is incomplete.
    const code = Object(error).errcode & 0xff;
    if (code !== SQLITE_CORRUPT && code !== SQLITE_IOERR) throw error;
  } finally {
    discard();
  }
}

function removeIfThere(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Whether both are the same file. */
function isSame(one: Deno.FileInfo | undefined, other: Deno.FileInfo | undefined): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino;
}

function infoOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch { // treated as missing, whatever the error
    return undefined;
  }
}
