/** The PostgreSQL engine, which many servers can share. */

import { waitFor } from "../../../async/abort.ts";
import type { Engine, OpenOptions } from "../engine.ts";
import { Catalogue } from "../../catalogue/catalogue.ts";
import { Ledger } from "../../ledger/ledger.ts";
import { DATABASE, PostgresDatabase } from "./database.ts";
import { BatchedLookups } from "./lookups.ts";

/**
 * Opens a database, creating its tables if needed.
 *
 * @param url `postgres://…`
 * @throws {StorageError} When it cannot be reached, or belongs to another release.
 */
export async function openEngine(url: string, options: OpenOptions = {}): Promise<Engine> {
  const database = new PostgresDatabase(url, options);
  try {
    await waitFor(DATABASE, database.createTables(options), options);
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    catalogue: new Catalogue(database, new BatchedLookups(database)),
    ledger: new Ledger(database),
    close: () => database.close(),
  };
}
