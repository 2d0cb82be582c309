/** The PostgreSQL engine. Many servers can share it. */

import { waitFor } from "../../async/abort.ts";
import type { OpenOptions } from "../../database/open_options.ts";
import type { PostgresPlace } from "../../database/place.ts";
import { PostgresDatabase } from "../../database/postgres/database.ts";
import { BatchedLookups } from "../catalogue/batched_lookups.ts";
import { Catalogue } from "../catalogue/catalogue.ts";
import { CATALOGUE } from "../catalogue/schema.ts";
import type { Engine } from "./engine.ts";

/**
 * Opens a database, creating its tables if needed.
 *
 * @throws {StorageError} When it cannot be reached, or belongs to another release.
 */
export async function openEngine(
  place: PostgresPlace,
  options: OpenOptions = {},
): Promise<Engine> {
  const database = new PostgresDatabase(place, options);
  try {
    await waitFor(database.name, database.createTables(CATALOGUE), options);
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    catalogue: new Catalogue(database, new BatchedLookups(database)),
    close: () => database.close(),
  };
}
