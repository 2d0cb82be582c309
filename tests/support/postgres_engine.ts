/**
 * PostgreSQL, loaded on demand: its package reads the environment when it is loaded, which bare
 * `deno test` does not permit.
 */

import type { OpenOptions } from "../../lib/database/open_options.ts";
import { postgresAt } from "../../lib/database/place.ts";
import type { PostgresOptions } from "../../lib/database/postgres/client.ts";
import type { PostgresDatabase } from "../../lib/database/postgres/database.ts";
import type { Schema } from "../../lib/database/sql/schema.ts";
import { CATALOGUE } from "../../lib/storage/catalogue/schema.ts";
import type { Engine } from "../../lib/storage/engines/engine.ts";
import { LEDGER } from "../../lib/usage/record/schema.ts";

/** Opens the engine at a URL. */
export async function openEngine(url: string, options?: OpenOptions): Promise<Engine> {
  const engine = await import("../../lib/storage/engines/postgres.ts");
  return await engine.openEngine(postgresAt(url), options);
}

/** Opens a database, and creates the tables of a schema. */
export async function openDatabase(
  url: string,
  schema: Schema,
  options?: PostgresOptions,
): Promise<PostgresDatabase & AsyncDisposable> {
  const { PostgresDatabase } = await import("../../lib/database/postgres/database.ts");
  const database = new PostgresDatabase(postgresAt(url), options);
  await database.createTables(schema);
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() });
}

/** Creates the tables of a server. */
export async function createTables(url: string): Promise<void> {
  for (const schema of [CATALOGUE, LEDGER]) await (await openDatabase(url, schema)).close();
}
