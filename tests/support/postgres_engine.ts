/**
 * The PostgreSQL engine, loaded on demand: its package reads the environment when it is loaded,
 * which bare `deno test` does not permit.
 */

import type { OpenOptions } from "../../lib/database/open_options.ts";
import { postgresAt } from "../../lib/database/place.ts";
import type { Database } from "../../lib/database/sql/database.ts";
import { CATALOGUE } from "../../lib/storage/catalogue/schema.ts";
import type { Engine } from "../../lib/storage/engines/engine.ts";
import { LEDGER } from "../../lib/usage/record/schema.ts";

/** Opens the engine at a URL. */
export async function openEngine(url: string, options?: OpenOptions): Promise<Engine> {
  const engine = await import("../../lib/storage/engines/postgres.ts");
  return await engine.openEngine(postgresAt(url), options);
}

/** Opens a database, and creates its tables. */
export async function openDatabase(url: string): Promise<Database & AsyncDisposable> {
  const { PostgresDatabase } = await import("../../lib/database/postgres/database.ts");
  const database = new PostgresDatabase(postgresAt(url));
  await database.createTables([CATALOGUE, LEDGER]);
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}
