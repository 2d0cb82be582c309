import { assertMatch } from "@std/assert";
import { needing, shared } from "../../../support/permissions.ts";
import { openEngine } from "../../../support/postgres_engine.ts";
import { POSTGRES, PostgresServer } from "../../../support/postgres.ts";
import { LINKED_RECORDS } from "../linked_rows.ts";

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
