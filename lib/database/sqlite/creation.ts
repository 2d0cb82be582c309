/** Creates the tables of a file, and recognizes the files of other programs and releases. */

import type { DatabaseSync } from "node:sqlite";
import { type OpenOptions, settingOf } from "../open_options.ts";
import { creationOf, type Dialect, type Schema } from "../sql/schema.ts";
import { NotCreatedError } from "../../errors/storage_error.ts";
import { isBusy } from "./lock.ts";

/** SQLite's text functions stop at the first NUL; its byte functions do not. */
const hasNoNul = (column: string) => `length(CAST(${column} AS BLOB)) = length(${column})`;

/** The pattern of a version 4 UUID (RFC 9562 §5.4) in lower case, for GLOB. */
const UUID_4_PATTERN = "xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx"
  .replaceAll("x", "[0-9a-f]");

/** The SQL that is particular to SQLite. */
export const DIALECT: Dialect = {
  uuidKey: (column) =>
    `TEXT PRIMARY KEY CHECK (${column} GLOB '${UUID_4_PATTERN}' AND ${hasNoNul(column)})`,
  text: "TEXT",
  integer: "INTEGER",
  json: (column) => `${column} TEXT NOT NULL CHECK (json_valid(${column}))`,
  hasOnly: (column, characters) =>
    `${column} NOT GLOB '*[^${characters}]*' AND ${hasNoNul(column)}`,
  isDay: (column) => `${column} IS date(${column})`,
  options: " STRICT, WITHOUT ROWID", // keeps primary keys from being null
};

/** Reads the state in one statement, because another process may be creating the tables. */
const STATE = `SELECT count(*) AS tables, (SELECT application_id FROM pragma_application_id) AS id,
  (SELECT user_version FROM pragma_user_version) AS version FROM sqlite_master`;

/**
 * Creates the tables if they are missing.
 *
 * @throws {Error} If the file belongs to another program or release, or lacks tables that must
 *   exist.
 */
export function createTables(
  database: DatabaseSync,
  schema: Schema,
  options: OpenOptions,
): void {
  const { mustExist, onCreate } = options;
  const { name, applicationId, version } = schema;
  if (mustExist) requireTables(database, schema, options);
  else if (!hasTables(database, schema)) {
    const isCreated = inTransaction(database, () => {
      if (hasTables(database, schema)) return false; // another process created them
      database.exec(creationOf(schema, DIALECT));
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${version}`);
      return true;
    });
    if (isCreated) onCreate?.(name);
  }
  useLog(database); // not before hasTables(): the file of another program must not change
}

/** @throws {Error} If the file belongs to another program or release, or lacks the tables. */
export function requireTables(database: DatabaseSync, schema: Schema, options: OpenOptions): void {
  if (!hasTables(database, schema)) throw new NotCreatedError(settingOf(options));
}

/** Returns whether a file has the tables. Throws for a file of another program or release. */
function hasTables(
  database: DatabaseSync,
  schema: Schema,
): boolean {
  const { name, applicationId, version: supported, upgrade } = schema;
  const { id, version, tables } = { ...database.prepare(STATE).get() };
  if (id === applicationId) {
    if (version === supported) return true;
    const fault = `It has version ${version} of the ${name}'s schema`;
    const remedy = Number(version) > supported ? "run a later one" : upgrade;
    throw new Error(`${fault}, but this release supports only ${supported}: ${remedy}`);
  }
  if (id !== 0 || version !== 0 || tables !== 0) {
    throw new Error(`It is not a ${name} of media-head: choose another path, or move it away`);
  }
  return false;
}

/** Runs an action in a transaction. If the action throws, the transaction is rolled back. */
export function inTransaction<T>(database: DatabaseSync, action: () => T): T {
  const run = (text: string) => database.prepare(text).run(); // exec() hides the code of an error
  run("BEGIN IMMEDIATE");
  try {
    const result = action();
    run("COMMIT");
    return result;
  } catch (error) {
    try {
      run("ROLLBACK");
    } catch { // after some errors, SQLite has rolled back already
    }
    throw error;
  }
}

/**
 * Enables the write-ahead log (WAL), so that writers do not block readers. Does nothing while
 * another process uses the file in another mode.
 */
function useLog(database: DatabaseSync): void {
  try {
    database.prepare("PRAGMA journal_mode = WAL").get();
  } catch (error) {
    if (!isBusy(error)) throw error;
  }
}
