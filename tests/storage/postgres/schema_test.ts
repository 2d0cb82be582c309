import { assertEquals, assertMatch } from "@std/assert";
import { MIGRATIONS } from "../../../lib/storage/postgres/schema.ts";
import { needing, shared } from "../../support/permissions.ts";
import { openEngine } from "../../support/postgres_engine.ts";
import { POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { checkMigrated, LINKED_RECORDS, RECORDS_OF_VERSION_1 } from "../linked_item_suite.ts";

const server = shared(POSTGRES, () => PostgresServer.start());
const test = needing(...POSTGRES);

test("PostgreSQL itself rejects malformed items at URLs", async () => {
  const database = await server().createDatabase();
  await (await openEngine(server().urlOf(database))).close();
  for (const [what, record, isSound] of LINKED_RECORDS) {
    const values = Object.values(record).map((value) =>
      typeof value === "string" ? `'${value}'` : String(value)
    );
    const insert = `INSERT INTO item (${Object.keys(record)}) VALUES (${values})`;
    const said = await server().query(`BEGIN; ${insert}; ROLLBACK`, database)
      .then(() => "taken", String);
    assertMatch(said, isSound ? /^taken$/ : /violates check constraint/, what);
  }
});

test("a PostgreSQL catalogue of version 1 keeps its items, and accepts items at URLs", async () => {
  const database = await server().createDatabase();
  await server().query(`SET ROLE ${USER}; ${MIGRATIONS[0]} ${RECORDS_OF_VERSION_1}`, database);
  const { catalogue, close } = await openEngine(server().urlOf(database));
  await checkMigrated(catalogue);
  const schema = await server().query("SELECT schema FROM catalogue", database);
  assertEquals(schema, [String(MIGRATIONS.length)]);
  await close();
});
