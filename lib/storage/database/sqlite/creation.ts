/**
 * Creating the tables of a file, and recognising those of another program or release.
 */

import type { DatabaseSync } from "node:sqlite";
import { NONE_YET, type OpenOptions } from "../engine.ts";
import { isBusy } from "./lock.ts";
import type { Schema } from "./schema.ts";

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
  const { name, applicationId, version, tables } = schema;
  if (!hasTables(database, schema)) {
    if (mustExist) throw new Error(NONE_YET);
    database.exec("BEGIN IMMEDIATE");
    try {
      if (!hasTables(database, schema)) { // or another process has just created them
        database.exec(tables);
        database.exec(`PRAGMA application_id = ${applicationId}`);
        database.exec(`PRAGMA user_version = ${version}`);
      }
      database.exec("COMMIT");
      onCreate?.(name);
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }
  useLog(database); // only now: it must not change the file of another program
}

/**
 * Returns whether a file has the tables.
 *
 * @throws {Error} When the file belongs to another program or another release.
 */
export function hasTables(database: DatabaseSync, schema: Schema): boolean {
  if (database.isTransaction) return hasTablesNow(database, schema);
  database.exec("BEGIN"); // another process may be creating them
  try {
    return hasTablesNow(database, schema);
  } finally {
    if (database.isTransaction) database.exec("ROLLBACK");
  }
}

function hasTablesNow(
  database: DatabaseSync,
  { name, applicationId, version: supported, upgrade }: Schema,
): boolean {
  const read = (statement: string) =>
    Number(Object.values(database.prepare(statement).get() ?? {})[0]);
  const [id, version] = [read("PRAGMA application_id"), read("PRAGMA user_version")];
  if (id === applicationId) {
    if (version === supported) return true;
    const fault = `It has version ${version} of the ${name}'s schema`;
    const remedy = version > supported ? "run a later one" : upgrade;
    throw new Error(`${fault}, but this release supports only ${supported}: ${remedy}`);
  }
  if (id !== 0 || version !== 0 || read("SELECT count(*) FROM sqlite_master") !== 0) {
    throw new Error(`It is not a ${name} of media-head: choose another path, or move it away`);
  }
  return false;
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
