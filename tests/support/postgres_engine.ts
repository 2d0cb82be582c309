/**
 * The PostgreSQL engine, loaded on demand: its package reads the environment when it is loaded,
 * which bare `deno test` does not permit.
 */

import type * as engine from "../../lib/storage/database/postgres/engine.ts";
import type { Database } from "../../lib/storage/database/sql/database.ts";

/** `openEngine()` of lib/storage/database/postgres/engine.ts. */
export const openEngine: typeof engine.openEngine = async (...args) =>
  await (await import("../../lib/storage/database/postgres/engine.ts")).openEngine(...args);

/** Opens a database, and creates its tables. */
export async function openDatabase(url: string): Promise<Database & AsyncDisposable> {
  const { PostgresDatabase } = await import("../../lib/storage/database/postgres/database.ts");
  const database = new PostgresDatabase(url);
  await database.createTables({});
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}
