/**
 * Reading the schema version of a file, and migrating it.
 */

import type { DatabaseSync } from "node:sqlite";
import { isBusy } from "./lock.ts";
import type { Schema } from "./schema.ts";

/**
 * Creates the tables, or migrates them to the current version.
 *
 * @param mayCreate Whether a file without tables counts as new.
 * @throws {Error} When the file belongs to another program or a later release.
 */
export function migrate(database: DatabaseSync, schema: Schema, mayCreate: boolean): void {
  const { applicationId, steps } = schema;
  if (schemaOf(database, schema, mayCreate) < steps.length) {
    database.exec("BEGIN IMMEDIATE");
    try {
      for (const step of steps.slice(schemaOf(database, schema, mayCreate))) database.exec(step);
      database.exec(`PRAGMA application_id = ${applicationId}`);
      database.exec(`PRAGMA user_version = ${steps.length}`);
      database.exec("COMMIT");
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }
  useLog(database); // only now: until here, the file alone shows what it is
}

/**
 * Returns the version of the tables in a file; 0 if there are none yet.
 *
 * @param mayCreate Whether a file without tables counts as new.
 * @throws {Error} When the file belongs to another program or a later release.
 */
export function schemaOf(database: DatabaseSync, schema: Schema, mayCreate: boolean): number {
  if (database.isTransaction) return schemaNow(database, schema, mayCreate);
  database.exec("BEGIN"); // another process may be creating the tables
  try {
    return schemaNow(database, schema, mayCreate);
  } finally {
    if (database.isTransaction) database.exec("ROLLBACK");
  }
}

function schemaNow(
  database: DatabaseSync,
  { name, applicationId, steps }: Schema,
  mayCreate: boolean,
): number {
  const read = (statement: string) =>
    Number(Object.values(database.prepare(statement).get() ?? {})[0]);
  const [id, version] = [read("PRAGMA application_id"), read("PRAGMA user_version")];
  if (id === applicationId) {
    if (version <= steps.length) return version;
    const fault = `It has version ${version} of the ${name}'s schema`;
    throw new Error(`${fault}, but this release supports ${steps.length} at most: run a later one`);
  }
  if (id !== 0 || version !== 0 || read("SELECT count(*) FROM sqlite_master") !== 0) {
    throw new Error(`It is not a ${name} of media-head: choose another path, or move it away`);
  }
  if (!mayCreate) throw new Error(`It no longer holds a ${name}`);
  return 0;
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
