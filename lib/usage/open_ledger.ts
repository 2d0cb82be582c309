/** Opens a ledger in its own database. Each driver is loaded only where it is used. */

import type { OpenOptions } from "../database/open_options.ts";
import type { FileCalls } from "../database/sqlite/files.ts";
import { RefusedError } from "../input/refused_error.ts";
import { withoutPassword } from "../input/printable.ts";
import { Ledger } from "./ledger.ts";
import { LEDGER } from "./schema.ts";

/** SQLite's options for a ledger. Waits a second at most, because failed flushes are retried. */
export const LEDGER_OPTIONS = { schema: LEDGER, synchronous: "NORMAL", timeout: 1_000 } as const;

/**
 * Opens the ledger in a database.
 *
 * @param url `sqlite:PATH`, or `postgres://…`
 * @throws {RefusedError} If the URL is neither, or the package for PostgreSQL is missing.
 * @throws {StorageError} If the database fails, or its ledger belongs to another release.
 */
export async function openLedger(
  url: string,
  options: OpenOptions & { readonly files: FileCalls },
): Promise<{ readonly ledger: Ledger; close(): Promise<void> }> {
  if (/^sqlite:./s.test(url)) {
    const { SqliteDatabase } = await import("../database/sqlite/database.ts").catch((cause) => {
      throw new RefusedError("SQLite needs Node 22.13 or later, or Deno", { cause });
    });
    const path = url.slice("sqlite:".length);
    const database = await SqliteDatabase.open(path, { ...options, ...LEDGER_OPTIONS });
    return { ledger: new Ledger(database), close: () => database.close() };
  }
  if (!/^postgres(?:ql)?:\/\//.test(url)) {
    const expected = 'expected "sqlite:PATH" or "postgres://…"';
    throw new RefusedError(`${options.setting}: ${expected}, got "${withoutPassword(url)}"`);
  }
  const { PostgresDatabase } = await import("../database/postgres/database.ts").catch((cause) => {
    throw new RefusedError("PostgreSQL needs the package pg: npm install pg", { cause });
  });
  const database = new PostgresDatabase(url, options);
  try {
    await database.createTables([LEDGER]);
  } catch (error) {
    await database.close();
    throw error;
  }
  return { ledger: new Ledger(database), close: () => database.close() };
}
