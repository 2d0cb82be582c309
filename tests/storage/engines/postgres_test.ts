/** The suites of every engine, on PostgreSQL: behind a pooler, if there is one. */

import { testMediaStorage } from "../media/media_storage_suite.ts";
import { openMemory } from "../../support/memory_storage.ts";
import { missingOf, needing, shared } from "../../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../../support/pgbouncer.ts";
import { POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { openDatabase, openEngine } from "../../support/postgres_engine.ts";
import { testLedger } from "../../usage/record/ledger_suite.ts";

const server = shared(POSTGRES, () => PostgresServer.start());
const bouncer = shared(PGBOUNCER, () => startPgBouncer(server()));
const isPooled = missingOf(PGBOUNCER) === "";

let database: string | undefined;

/** Empties a database: always the same one, since a pooler takes time to prepare another. */
async function emptyUrl(): Promise<string> {
  database ??= await server().createDatabase();
  const empty = `DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION ${USER}`;
  await server().query(empty, database);
  return server().urlOf(database, isPooled ? bouncer().port : server().port);
}

const name = isPooled ? "PgBouncer" : "PostgreSQL";
const register = needing(...POSTGRES);
testMediaStorage(
  `MediaStorage on ${name}`,
  async () => await openMemory(await openEngine(await emptyUrl())),
  register,
);
testLedger(`Ledger on ${name}`, async () => await openDatabase(await emptyUrl()), register);
