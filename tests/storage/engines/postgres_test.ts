/** The suite of media storage on PostgreSQL: behind a pooler, if there is one. */

import { testMediaStorage } from "../media/media_storage_suite.ts";
import { openMemory } from "../../support/memory_storage.ts";
import { missingOf, needing, shared } from "../../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../../support/pgbouncer.ts";
import { POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { openEngine } from "../../support/postgres_engine.ts";

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

testMediaStorage(
  `MediaStorage on ${isPooled ? "PgBouncer" : "PostgreSQL"}`,
  async () => await openMemory(await openEngine(await emptyUrl())),
  needing(...POSTGRES),
);
