/** The suites of every engine, on PostgreSQL: directly, and behind a pooler. */

import { openMemory } from "../../support/memory_storage.ts";
import { needing, shared } from "../../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../../support/pgbouncer.ts";
import { openDatabase, openEngine } from "../../support/postgres_engine.ts";
import { POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { testLedger } from "../../usage/ledger_suite.ts";
import { testMediaStorage } from "../../storage/media/media_storage_suite.ts";

const server = shared(POSTGRES, () => PostgresServer.start());
const bouncer = shared(PGBOUNCER, () => startPgBouncer(server()));

let database: string | undefined;

/** Empties a database: always the same one, since a pooler takes time to prepare another. */
async function emptyUrl(port: number): Promise<string> {
  database ??= await server().createDatabase();
  const empty = `DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION ${USER}`;
  await server().query(empty, database);
  return server().urlOf(database, port);
}

for (
  const [name, needs, port] of [
    ["PostgreSQL", POSTGRES, () => server().port],
    ["PgBouncer", PGBOUNCER, () => bouncer().port],
  ] as const
) {
  const register = needing(...needs);
  testMediaStorage(
    `MediaStorage on ${name}`,
    async () => await openMemory(await openEngine(await emptyUrl(port()))),
    register,
  );
  testLedger(
    `Ledger on ${name}`,
    async () => await openDatabase(await emptyUrl(port())),
    register,
  );
}
