/** Opens a ledger in its own database. Each driver is loaded only where it is used. */

import type { PostgresOptions } from "../../database/postgres/client.ts";
import type { DatabasePlace } from "../../database/place.ts";
import type { Database } from "../../database/sql/database.ts";
import type { Schema } from "../../database/sql/schema.ts";
import type { SqliteRuntime } from "../../database/sqlite/runtime.ts";
import { WrongUsageError } from "../../errors/refused_error.ts";
import { Ledger } from "./ledger.ts";
import { LEDGER } from "./schema.ts";

/** A ledger, and what disconnects it. */
export interface OpenLedger {
  readonly ledger: Ledger;
  close(): Promise<void>;
}

/** A ledger's database, and what disconnects it. */
interface OpenDatabase {
  readonly database: Database;
  close(): Promise<void>;
}

type LedgerOpening = PostgresOptions & { readonly runtime: () => SqliteRuntime };

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
  options: LedgerOpening,
): Promise<OpenLedger> {
  const { database, close } = await openLedgerDatabase(place, LEDGER, options);
  return { ledger: new Ledger(database), close };
}

/** Opens the database of a ledger with some schema. */
export async function openLedgerDatabase(
  place: DatabasePlace,
  schema: Schema,
  { runtime, ...options }: LedgerOpening,
): Promise<OpenDatabase> {
  if (place.kind === "sqlite") {
    if (options.password !== undefined) {
      throw new WrongUsageError("password: only PostgreSQL has one; remove it");
    }
    const { SqliteDatabase } = await import("../../database/sqlite/database.ts");
    const opening = { ...options, ...LEDGER_OPTIONS, schema, runtime: runtime() };
    const database = await SqliteDatabase.open(place.path, opening);
    return { database, close: () => database.close() };
  }
  const { PostgresDatabase } = await import("../../database/postgres/database.ts");
  const database = new PostgresDatabase(place, options);
  try {
    await database.createTables([schema]);
  } catch (error) {
    await database.close();
    throw error;
  }
  return { database, close: () => database.close() };
}
