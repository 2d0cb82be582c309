/**
 * One opening of a database file.
 *
 * SQLite takes the log beside a file (`-wal`) for that of whatever file it finds there: where a file
 * was replaced, it would mix the pages of both. So whoever lets go of a file that is gone first has
 * what is left in the log written to where it belongs.
 *
 * Nothing but SQLite opens the file here: as soon as a process closes any descriptor of a file, the
 * system lets go of all locks (fcntl) that it has on it.
 */

import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Row, Statement, Value } from "../sql/database.ts";
import { busyError } from "./lock.ts";
import { migrate, schemaOf } from "./migration.ts";
import type { Schema } from "./schema.ts";

/** Characters of the longest statement that is kept prepared; longer ones vary in length. */
const MAX_PREPARED = 5_000;

/** Statements in a transaction that more like it are to follow, of an import. */
const MANY = 10;

/** Milliseconds by which the clock of a file system may be behind. */
const GRANULARITY = 20;

/** The path of what is in no file. */
export const MEMORY = ":memory:";

/** SQLite's primary result codes for a file that is not whole, or not as long as it says it is. */
const [SQLITE_IOERR, SQLITE_CORRUPT] = [10, 11];

/** How a file is opened. */
export interface ConnectionOptions {
  readonly schema: Schema;
  /** What a loss of power may cost: with `NORMAL` the last transactions, with `FULL` nothing. */
  readonly synchronous: "FULL" | "NORMAL";
}

/** A database file, open. */
export class Connection {
  readonly #path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #logPath: string;
  readonly #log: Deno.FileInfo | undefined;
  /** The file as it was before it was opened; none in memory. */
  readonly #info: Deno.FileInfo | undefined;
  #isForMany = false;
  /** When the log was last used for this file alone, in milliseconds since the epoch. */
  #ownedAt = -Infinity;

  /**
   * Opens a file, and makes its tables or moves them forward, if need be.
   *
   * @param path `:memory:` for one that lasts as long as its object.
   * @param mayCreate Whether to make a file where there is none.
   * @throws {Error} When it cannot be opened, is another program's, or a later release's.
   */
  constructor(path: string, { schema, synchronous }: ConnectionOptions, mayCreate: boolean) {
    const info = path === MEMORY ? undefined : mayCreate ? infoOf(path) : Deno.statSync(path);
    if (!mayCreate) requireSound(path, schema); // and there: SQLite would make a file
    this.#path = path;
    this.#database = new DatabaseSync(path, { timeout: 0 });
    try {
      this.#database.exec(`PRAGMA synchronous = ${synchronous}`);
      migrate(this.#database, schema, mayCreate);
      this.prepare("SELECT count(*) FROM sqlite_master").get(); // from now on there is a log
      this.#logPath = `${this.#database.location()}-wal`;
      this.#log = infoOf(this.#logPath);
      this.#info = info ?? (path === MEMORY ? undefined : Deno.statSync(path));
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Prepares a statement, or gives the one prepared before. */
  prepare(text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#database.prepare(text.replaceAll(/\$(?=\d)/g, "?"));
      if (text.length <= MAX_PREPARED) this.#statements.set(text, statement);
    }
    return statement;
  }

  /** Runs statements as one transaction: all of them, or none. */
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
   * Keeps more of the file in memory, and writes the log to it less often: from one transaction to
   * the next, many rows are on pages that were just read, and just written.
   */
  #expectMany(): void {
    this.#isForMany = true;
    this.#database.exec("PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 8000");
  }

  /** Whether the file is still in its place, and as it was before it was opened. */
  compare(): "same" | "changed" | "gone" {
    if (this.#info === undefined) return "same"; // in memory
    const info = infoOf(this.#path);
    // With other permissions it counts as gone, too, since SQLite opens no file that it has open.
    if (!isSame(info, this.#info) || info?.mode !== this.#info.mode) return "gone";
    this.#ownedAt = Math.max(this.#ownedAt, Date.now() - GRANULARITY);
    const { size, mtime } = this.#info;
    return info?.size === size && Number(info.mtime) === Number(mtime) ? "same" : "changed";
  }

  /**
   * Has what is in the log written to the file, and empties it.
   *
   * @throws {Error} When somebody else uses it; see {@linkcode isBusy}.
   */
  emptyLog(): void {
    const { busy } = { ...this.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() };
    if (busy === 1) throw busyError();
  }

  /**
   * Closes a file that is gone from its place.
   *
   * @returns Whether others may be using its log yet.
   */
  leave(): boolean {
    const log = infoOf(this.#logPath);
    const isInPlace = log !== undefined && isSame(log, this.#log ?? log);
    const isUsed = isInPlace && log.size > 0;
    // What came later may be of the file that is in the place now.
    if (!isInPlace || isUsed && Number(log.mtime) <= this.#ownedAt) {
      try {
        this.emptyLog();
      } catch { // another process is about to do it
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
 * Makes sure that a file alone is what it should be: SQLite would believe the log first, and looks for
 * that of another name of the file under this name. (A URL with `immutable=1` would do, but Deno 2.9.6
 * takes none without all permissions.)
 */
function requireSound(path: string, schema: Schema): void {
  const real = Deno.realPathSync(path);
  const alias = `${real}-check-${Deno.pid}`;
  const discard = () => ["", "-wal", "-shm"].forEach((end) => removeIfThere(alias + end));
  discard(); // a killed process of this number may have left them
  try {
    Deno.linkSync(real, alias);
  } catch { // there are file systems without links
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
    // While somebody writes what is in the log to it, the file alone is not whole.
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

/** Whether it is one and the same file. */
function isSame(one: Deno.FileInfo | undefined, other: Deno.FileInfo | undefined): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino;
}

function infoOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch { // whatever it is, there is no such file to be had
    return undefined;
  }
}
