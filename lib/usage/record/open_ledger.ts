/**
 * Opens a ledger in its own database: for a process that counts, which never waits for it, or for a
 * command. Each driver is loaded only where it is used.
 */

import type { PostgresOptions } from "../../database/postgres/client.ts";
import type { Database } from "../../database/sql/database.ts";
import { type DatabasePlace, sqliteAt, type SqlitePlace } from "../../database/place.ts";
import type { SqliteOptions } from "../../database/sqlite/database.ts";
import type { SqliteRuntime } from "../../database/sqlite/runtime.ts";
import { RefusedError, WrongUsageError } from "../../errors/refused_error.ts";
import { Ledger } from "./ledger.ts";
import { LEDGER } from "./schema.ts";

/** A ledger, and what disconnects it. */
export interface OpenLedger {
  readonly ledger: Ledger;
  /**
   * Checks that a process could write to it, without writing.
   *
   * @throws {StorageError} If it could not.
   */
  checkWriting(): Promise<void>;
  close(): Promise<void>;
}

export interface LedgerOptions extends Omit<PostgresOptions, "isPatient"> {
  /** Called for SQLite only. */
  readonly runtime: () => SqliteRuntime;
}

/** Milliseconds for which a command waits for the lock of a SQLite file. */
const COMMAND_TIMEOUT_MS = 1_000;

/** Returns the place of the ledger beside a database: on SQLite, a file that only ledgers lock. */
export function ledgerPlaceOf(database: DatabasePlace): DatabasePlace {
  return database.kind === "sqlite" ? sqliteAt(database.ledgerPath) : database;
}

/**
 * Opens the ledger for a process that counts, creating it if needed. It writes one transaction at a
 * time. On PostgreSQL it has one connection, which it waits for; on SQLite it waits for no lock.
 *
 * @throws {WrongUsageError} If there is a password for SQLite.
 * @throws {RefusedError} If the runtime has no SQLite, or the package for PostgreSQL is missing.
 * @throws {StorageError} If the database fails, or its ledger belongs to another release.
 */
export async function openLedger(
  place: DatabasePlace,
  { runtime, ...options }: LedgerOptions,
): Promise<OpenLedger> {
  if (place.kind === "sqlite") {
    return await openSqlite(place, { ...options, timeout: 0 }, runtime);
  }
  return await openPostgres(place, { ...options, isPatient: true });
}

/**
 * Opens an existing ledger for a command that changes it.
 *
 * @throws As {@linkcode openLedger}, and {@linkcode StorageError} if there is none.
 */
export async function openLedgerToChange(
  place: DatabasePlace,
  { runtime, ...options }: LedgerOptions,
): Promise<OpenLedger> {
  const opening = { ...options, mustExist: true };
  if (place.kind === "postgres") return await openPostgres(place, opening);
  return await openSqlite(place, { ...opening, timeout: COMMAND_TIMEOUT_MS }, runtime);
}

/**
 * Opens an existing ledger to read it, and changes nothing about it.
 *
 * @throws As {@linkcode openLedgerToChange}, and {@linkcode RefusedError} if the database is a replica.
 */
export async function openLedgerToRead(
  place: DatabasePlace,
  { runtime, ...options }: LedgerOptions,
): Promise<OpenLedger> {
  const opening = { ...options, mustExist: true };
  if (place.kind === "postgres") return await openPostgres(place, opening, requirePrimary);
  const toRead = { ...opening, timeout: COMMAND_TIMEOUT_MS, isReadOnly: true };
  return await openSqlite(place, toRead, runtime);
}

async function openSqlite(
  { path }: SqlitePlace,
  options:
    & Omit<SqliteOptions, "schema" | "synchronous" | "runtime">
    & Pick<PostgresOptions, "password">,
  runtime: () => SqliteRuntime,
): Promise<OpenLedger> {
  if (options.password !== undefined) {
    throw new WrongUsageError("password: only PostgreSQL has one; remove it");
  }
  const { SqliteDatabase } = await import("../../database/sqlite/database.ts");
  const database = await SqliteDatabase.open(path, {
    ...options,
    schema: LEDGER,
    synchronous: "NORMAL", // a power failure that takes the last heartbeats takes their sequence, too
    runtime: runtime(),
  });
  // SQLite opens no file that it cannot write, unless it is opened to read.
  const checkWriting = () => Promise.resolve();
  return { ledger: new Ledger(database), checkWriting, close: () => database.close() };
}

async function openPostgres(
  place: Extract<DatabasePlace, { kind: "postgres" }>,
  options: PostgresOptions,
  check: (database: Database) => Promise<void> = () => Promise.resolve(),
): Promise<OpenLedger> {
  const { PostgresDatabase } = await import("../../database/postgres/database.ts");
  const database = new PostgresDatabase(place, options);
  try {
    await database.createTables(LEDGER);
    await check(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  const checkWriting = () => database.checkWriting(LEDGER);
  return { ledger: new Ledger(database), checkWriting, close: () => database.close() };
}

/** Refuses a replica: what it has yet to receive would be missing, and nothing would say so. */
async function requirePrimary(database: Database): Promise<void> {
  const text = "SELECT CAST(pg_is_in_recovery() AS int) AS is_replica";
  const [row] = await database.query({ text });
  if (row?.["is_replica"] === 0) return;
  throw new RefusedError("the database is a replica, which may be behind; expected the primary");
}
