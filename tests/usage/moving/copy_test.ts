/** Copying records between the engines. */

import { openLedgerDatabase } from "../../support/ledger_at.ts";
import { needing, shared } from "../../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { openDatabase } from "../../support/postgres_engine.ts";
import { testCopy } from "./copy_suite.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());
const openPostgres = async () =>
  await openDatabase(postgres().urlOf(await postgres().createDatabase()));

testCopy("SQLite to SQLite", { openOld: openLedgerDatabase, openNew: openLedgerDatabase });
testCopy(
  "SQLite to PostgreSQL",
  { openOld: openLedgerDatabase, openNew: openPostgres },
  needing(...POSTGRES),
);
testCopy(
  "PostgreSQL to SQLite",
  { openOld: openPostgres, openNew: openLedgerDatabase },
  needing(...POSTGRES),
);
testCopy(
  "PostgreSQL to PostgreSQL",
  { openOld: openPostgres, openNew: openPostgres },
  needing(...POSTGRES),
);
