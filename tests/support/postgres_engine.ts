/**
 * The PostgreSQL engine, loaded on demand: its package reads the environment when it is loaded,
 * which bare `deno test` does not permit.
 */

import type { Database } from "../../lib/database/sql/database.ts";
import { CATALOGUE } from "../../lib/storage/catalogue/schema.ts";
import type * as engine from "../../lib/storage/engines/postgres.ts";
import { LEDGER } from "../../lib/usage/record/schema.ts";

/** `openEngine()` of lib/storage/engines/postgres.ts. */
export const openEngine: typeof engine.openEngine = async (...args) =>
  await (await import("../../lib/storage/engines/postgres.ts")).openEngine(...args);

/** Opens a database, and creates its tables. */
export async function openDatabase(url: string): Promise<Database & AsyncDisposable> {
  const { PostgresDatabase } = await import("../../lib/database/postgres/database.ts");
  const database = new PostgresDatabase(url);
  await database.createTables([CATALOGUE, LEDGER]);
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}
