/** Opens a ledger in its own database. Each driver is loaded only where it is used. */

import type { PostgresOptions } from "../../database/postgres/client.ts";
import { faultIn, parsePostgresUrl } from "../../database/postgres_url.ts";
import type { SqliteRuntime } from "../../database/sqlite/runtime.ts";
import { SQLITE_URL } from "../../database/sqlite_url.ts";
import { WrongUsageError } from "../../errors/refused_error.ts";
import { withoutPassword } from "../../input/printable.ts";
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
 * @param url `sqlite:PATH`, or `postgres://…`
 * @param runtime Called for SQLite only.
 * @throws {WrongUsageError} If the URL is neither, has an unescaped "#", or has parameters that are
 *   mistyped or choose a schema in a way that has no effect.
 * @throws {RefusedError} If the runtime has no SQLite, or the package for PostgreSQL is missing.
 * @throws {StorageError} If the database fails, or its ledger belongs to another release.
 */
export async function openLedger(
  url: string,
  { runtime, ...options }: PostgresOptions & { readonly runtime: () => SqliteRuntime },
): Promise<OpenLedger> {
  if (SQLITE_URL.test(url)) {
    if (options.password !== undefined) {
      throw new WrongUsageError("password: only PostgreSQL has one; remove it");
    }
    const { SqliteDatabase } = await import("../../database/sqlite/database.ts");
    const path = url.slice("sqlite:".length);
    const opening = { ...options, ...LEDGER_OPTIONS, runtime: runtime() };
    const database = await SqliteDatabase.open(path, opening);
    return { ledger: new Ledger(database), close: () => database.close() };
  }
  const isPostgres = /^postgres(?:ql)?:\/\//.test(url);
  const fault = isPostgres ? faultIn(url) : undefined;
  if (fault !== undefined) throw new WrongUsageError(`${options.setting}: ${fault}`);
  if (!isPostgres || parsePostgresUrl(url) === null) {
    const expected = 'expected "sqlite:PATH" or "postgres://…"';
    throw new WrongUsageError(`${options.setting}: ${expected}, got "${withoutPassword(url)}"`);
  }
  const { PostgresDatabase } = await import("../../database/postgres/database.ts");
  const database = new PostgresDatabase(url, options);
  try {
    await database.createTables([LEDGER]);
  } catch (error) {
    await database.close();
    throw error;
  }
  return { ledger: new Ledger(database), close: () => database.close() };
}
