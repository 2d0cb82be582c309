/** Creating the tables of a file, and recognising those of another program or release. */

import type { DatabaseSync } from "node:sqlite";
import { NOT_CREATED_YET, type OpenOptions } from "../open_options.ts";
import { isBusy } from "./lock.ts";
import { creationOf, type Schema } from "../sql/schema.ts";
import { DIALECT } from "./dialect.ts";

/** One statement, because another process may be creating the tables. */
const STATE = `SELECT count(*) AS tables, (SELECT application_id FROM pragma_application_id) AS id,
  (SELECT user_version FROM pragma_user_version) AS version FROM sqlite_master`;

/**
 * Creates the tables, unless they are there.
 *
 * @throws {Error} When the file belongs to another program or another release, or has no tables and
 *   must have them.
 */
export function createTables(
  database: DatabaseSync,
  schema: Schema,
  { mustExist, onCreate }: OpenOptions,
): void {
  const { name, applicationId, version } = schema;
  if (!hasTables(database, schema)) {
    if (mustExist) throw new Error(NOT_CREATED_YET);
    const isCreated = inTransaction(database, () => {
      if (hasTables(database, schema)) return false; // another process has just created them
      database.exec(creationOf(schema, DIALECT));
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${version}`);
      return true;
    });
    if (isCreated) onCreate?.(name);
  }
  useLog(database); // only now: it must not change the file of another program
}

/** Returns whether a file has the tables; throws for a file of another program or release. */
function hasTables(
  database: DatabaseSync,
  { name, applicationId, version: supported, upgrade }: Schema,
): boolean {
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

/** Runs an action in a transaction, which is rolled back if it throws. */
export function inTransaction<T>(database: DatabaseSync, action: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = action();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    try {
      database.exec("ROLLBACK");
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
