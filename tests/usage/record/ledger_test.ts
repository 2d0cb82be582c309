/** The suite of every ledger: on SQLite, and on PostgreSQL as processes use it, behind a pooler if there is one. */

import { LEDGER } from "../../../lib/usage/record/schema.ts";
import { openLedgerDatabase } from "../../support/ledger_at.ts";
import { missingOf, needing, shared } from "../../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../../support/pgbouncer.ts";
import { POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { openDatabase } from "../../support/postgres_engine.ts";
import { testLedger } from "./ledger_suite.ts";

const server = shared(POSTGRES, () => PostgresServer.start());
const bouncer = shared(PGBOUNCER, () => startPgBouncer(server()));
const isPooled = missingOf(PGBOUNCER) === "";

let name: string | undefined;

/** Empties a database: always the same one, since a pooler takes time to prepare another. */
async function openEmpty() {
  name ??= await server().createDatabase();
  const empty = `DROP SCHEMA public CASCADE; CREATE SCHEMA public AUTHORIZATION ${USER}`;
  await server().query(empty, name);
  const url = server().urlOf(name, isPooled ? bouncer().port : server().port);
  return await openDatabase(url, LEDGER, { isPatient: true });
}

testLedger("Ledger on SQLite", openLedgerDatabase);
testLedger(`Ledger on ${isPooled ? "PgBouncer" : "PostgreSQL"}`, openEmpty, needing(...POSTGRES));
