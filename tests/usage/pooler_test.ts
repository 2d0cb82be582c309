/**
 * A record behind PgBouncer in transaction mode, on the connection that another application uses,
 * whose rows are guarded by policies.
 */

import { assert, assertEquals } from "@std/assert";
import { loadDriver } from "../../lib/database/postgres/driver.ts";
import { newToken } from "../../lib/storage/token.ts";
import { askVerdict, CALLED } from "../support/gate.ts";
import { testsInFolder } from "../support/media_cli.ts";
import { PGBOUNCER, startPgBouncer } from "../support/pgbouncer.ts";
import { PostgresServer, USER } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { addPast, callsIn, startRecorded } from "../support/recorded_processes.ts";
import { until } from "../support/within.ts";

const test = testsInFolder(...PGBOUNCER);

/** The settings that a transaction of the record's may change, with values that are not its own. */
const SETTINGS = {
  row_security: "on",
  synchronous_commit: "off",
  lock_timeout: "7s",
  idle_in_transaction_session_timeout: "66s",
};

test("the record works through a pooler, and leaves nothing to an application that lives by policies", async (folder) => {
  await using server = await PostgresServer.start({ settings: SETTINGS });
  const name = await server.createDatabase();
  // One connection, so that every statement follows one of somebody else's.
  await using bouncer = await startPgBouncer(
    server,
    "min_pool_size = 1\ndefault_pool_size = 1\n",
  );
  const DATABASE_URL = server.urlOf(name, bouncer.port);
  await server.query(
    `CREATE TABLE orders (tenant text);
         INSERT INTO orders VALUES ('ours'), ('theirs');
         ALTER TABLE orders OWNER TO ${USER};
         ALTER TABLE orders FORCE ROW LEVEL SECURITY;
         ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON orders USING (tenant = 'ours')`,
    name,
  );
  const application = new (loadDriver()).Client({ connectionString: DATABASE_URL });
  await application.connect();
  const settings = Object.keys(SETTINGS).map((each) => `current_setting('${each}') AS ${each}`);
  let isDone = false;
  let asked = 0;
  const asking = (async () => {
    while (!isDone) {
      const text = `SELECT tenant, ${settings.join()} FROM orders`;
      const expected = { tenant: "ours", ...SETTINGS };
      assertEquals((await application.query(text)).rows, [expected]);
      asked++;
    }
  })();

  const media = await startRecorded(folder, { environment: { DATABASE_URL } });
  const record = { execute: (sql: string) => server.query(sql, name) };
  await addPast(record);
  for (const method of ["HEAD", "GET"]) {
    for (const path of ["/audio", "/video"]) {
      const { status } = await requestRaw(media.port, method, `${path}/${newToken()}`);
      assertEquals(status, 308);
    }
  }
  await until("the calls", async () => await callsIn(record) === 4);
  const { status, text, json } = await askVerdict(DATABASE_URL);
  assertEquals([status, json.gaps], [CALLED, []], text);
  assertEquals((await media.stop()).code, 0);
  isDone = true;
  await asking;
  await application.end();
  assert(asked > 50, `${asked}`);
  const ends = "SELECT ended FROM media_head_session WHERE id <> 'past'";
  assertEquals(await server.query(ends, name), ["stopped"]);
});
