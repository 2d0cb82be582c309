/**
 * The PostgreSQL engine, which many servers can share.
 */

import { patience, waitFor } from "../../../async/abort.ts";
import type { Engine, OpenOptions } from "../engine.ts";
import { SqlCatalogue, valuesOf } from "../sql/catalogue.ts";
import { SqlLedger } from "../sql/ledger.ts";
import { DATABASE, PostgresDatabase } from "./database.ts";
import { BatchedLookups } from "./lookups.ts";

/** Milliseconds; reading the version takes a round trip. */
const VERSION_TTL_MS = 1_000;

/**
 * Opens a database, creating its tables if needed.
 *
 * @param url `postgres://…`
 * @throws {StorageError} When it cannot be reached, or belongs to another release.
 */
export async function openEngine(url: string, options: OpenOptions = {}): Promise<Engine> {
  const database = new PostgresDatabase(url);
  try {
    await waitFor(DATABASE, database.createTables(options), patience.signal);
  } catch (error) {
    await database.close();
    throw error;
  }
  const lookups = new BatchedLookups(database);
  const catalogue = new SqlCatalogue(database, {
    find: async (token) => {
      const row = await lookups.find(token);
      return row && valuesOf(row);
    },
    version: () => lookups.version(),
    versionTtl: VERSION_TTL_MS,
  });
  return {
    catalogue,
    ledger: new SqlLedger(database),
    exclusively: (keys, action) => database.exclusively(keys, action),
    close: () => database.close(),
  };
}
