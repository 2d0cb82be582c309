/**
 * The schema of a file: which version it has, and how it comes to that of this program.
 */

import type { DatabaseSync } from "node:sqlite";
import { isBusy } from "./lock.ts";
import type { Schema } from "./schema.ts";

/**
 * Makes the tables, or brings them to the version that this program knows.
 *
 * @param mayCreate Whether a file without any tables is a new one.
 * @throws {Error} When it is another program's, or a later release's.
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
  useLog(database); // not before: the file alone is to tell what it is
}

/**
 * The version of the tables in a file; 0 for none yet.
 *
 * @param mayCreate Whether a file without any tables is a new one.
 * @throws {Error} When it is another program's, or a later release's.
 */
export function schemaOf(database: DatabaseSync, schema: Schema, mayCreate: boolean): number {
  if (database.isTransaction) return schemaNow(database, schema, mayCreate);
  database.exec("BEGIN"); // somebody may be making the tables
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
    throw new Error(`${fault}, and this release knows ${steps.length} at most: run a later one`);
  }
  if (id !== 0 || version !== 0 || read("SELECT count(*) FROM sqlite_master") !== 0) {
    throw new Error(`It is not a ${name} of media-head: choose another path, or move it away`);
  }
  if (!mayCreate) throw new Error(`It holds no ${name} any more`);
  return 0;
}

/**
 * Has SQLite write into a log first (WAL), so that reading goes on beside writing. A file is left
 * as it is while somebody uses it in another way.
 */
function useLog(database: DatabaseSync): void {
  try {
    database.prepare("PRAGMA journal_mode = WAL").get();
  } catch (error) {
    if (!isBusy(error)) throw error;
  }
}
