/** Opens a ledger in its own database. Each driver is loaded only where it is used. */

import type { PostgresOptions } from "../../database/postgres/client.ts";
import type { DatabasePlace } from "../../database/place.ts";
import type { SqliteRuntime } from "../../database/sqlite/runtime.ts";
import { WrongUsageError } from "../../errors/refused_error.ts";
import { Ledger } from "./ledger.ts";
import { LEDGER } from "./schema.ts";

/** A ledger, and what disconnects it. */
export interface OpenLedger {
  readonly ledger: Ledger;
  close(): Promise<void>;
}

/** SQLite's options for a ledger. Waits a second at most, because failed flushes are retried. */
export const LEDGER_OPTIONS = { schema: LEDGER, synchronous: "NORMAL", timeout: 1_000 } as const;

/**
 * Opens the ledger in a database.
 *
 * @param runtime Called for SQLite only.
 * @throws {WrongUsageError} If there is a password for SQLite.
 * @throws {RefusedError} If the runtime has no SQLite, or the package for PostgreSQL is missing.
 * @throws {StorageError} If the database fails, or its ledger belongs to another release.
 */
export async function openLedger(
  place: DatabasePlace,
  { runtime, ...options }: PostgresOptions & { readonly runtime: () => SqliteRuntime },
): Promise<OpenLedger> {
  if (place.kind === "sqlite") {
    if (options.password !== undefined) {
      throw new WrongUsageError("password: only PostgreSQL has one; remove it");
    }
    const { SqliteDatabase } = await import("../../database/sqlite/database.ts");
    const opening = { ...options, ...LEDGER_OPTIONS, runtime: runtime() };
    const database = await SqliteDatabase.open(place.path, opening);
    return { ledger: new Ledger(database), close: () => database.close() };
  }
  const { PostgresDatabase } = await import("../../database/postgres/database.ts");
  const database = new PostgresDatabase(place, options);
  try {
    await database.createTables([LEDGER]);
  } catch (error) {
    await database.close();
    throw error;
  }
  return { ledger: new Ledger(database), close: () => database.close() };
}
