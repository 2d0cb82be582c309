/**
 * Policies of row-level security: on our tables, where a filtered result would look like an absence,
 * and on those of another application that shares our connections through a pooler.
 */

import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { describeError } from "../../../lib/log/log.ts";
import type { Catalogue } from "../../../lib/storage/catalogue/catalogue.ts";
import { newToken } from "../../../lib/storage/token.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { inFolder, mediaHere } from "../../support/media_cli.ts";
import { needing, shared } from "../../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../../support/pgbouncer.ts";
import { PASSWORD, POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { openEngine } from "../../support/postgres_engine.ts";

const server = shared(POSTGRES, () => PostgresServer.start());

const OBJECT = { location: "s3://bucket/a", validator: '"a"' };
const ITEM = { ...newMetadata(), digest: "ab".repeat(32), length: 7, ...OBJECT };

/** What a server and commands ask of the catalogue. */
const QUESTIONS: [what: string, ask: (catalogue: Catalogue) => Promise<unknown>][] = [
  ["find()", (catalogue) => catalogue.find(ITEM.token)],
  ["version()", (catalogue) => catalogue.version()],
  ["findAll()", (catalogue) => catalogue.findAll([ITEM.token])],
  ["uses()", (catalogue) => catalogue.uses(ITEM.digest)],
  ["usesAfterChanges()", (catalogue) => catalogue.usesAfterChanges(ITEM.digest)],
  ["isEmpty()", (catalogue) => catalogue.isEmpty()],
  ["list()", (catalogue) => Array.fromAsync(catalogue.list())],
  ["setValidator()", (catalogue) => catalogue.setValidator(ITEM.token, '"x"')],
  ["unpublish()", (catalogue) => catalogue.unpublish(ITEM.token, 0)],
];

/** Puts policies on a table that hide all of its rows from everybody but the superuser. */
const hide = (table: string) =>
  `ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY; ALTER TABLE ${table} FORCE ROW LEVEL SECURITY`;

needing(...POSTGRES)("what a policy would filter is a fault, and never an absence", async () => {
  for (const table of ["media_head_item", "media_head_catalogue"]) {
    const database = await server().createDatabase();
    const url = server().urlOf(database);
    const engine = await openEngine(url);
    const { catalogue } = engine;
    await catalogue.add(ITEM);
    await server().query(hide(table), database);
    for (const [what, ask] of QUESTIONS) {
      if (table === "media_head_catalogue" && /^(findAll|uses|isEmpty|list)\(/.test(what)) continue;
      const fault = describeError(
        await assertRejects(() => ask(catalogue), StorageError, "", what),
      );
      assertStringIncludes(fault, "row-level security", `${what} of ${table}`);
      await new Promise((resolve) => setTimeout(resolve, 100)); // a lookup's fault is reused so long
    }
    await inFolder(async (folder) => {
      const { code, stdout, stderr } = await mediaHere(folder, ["export"], { DATABASE_URL: url });
      assertEquals([code, stdout], [1, ""], stderr);
      assertStringIncludes(stderr, "row-level security");
    });
    await server().query(`ALTER TABLE ${table} NO FORCE ROW LEVEL SECURITY`, database); // for its owner
    assertEquals((await catalogue.find(ITEM.token)).state, "published");
    await engine.close();
  }
});

needing(...PGBOUNCER)(
  "another application lives by its policies on the connection that ours shares with it",
  async () => {
    const one = "default_pool_size = 1\nmin_pool_size = 0\nreserve_pool_size = 0";
    await using bouncer = await startPgBouncer(server(), one);
    const database = await server().createDatabase();
    const engine = await openEngine(server().urlOf(database, bouncer.port));
    await server().query(
      `CREATE TABLE note (author text); INSERT INTO note VALUES ('a'), ('b');
       ALTER TABLE note ENABLE ROW LEVEL SECURITY; GRANT SELECT ON note TO ${USER};
       CREATE POLICY own ON note USING (author = 'a')`,
      database,
    );
    const { loadDriver } = await import("../../../lib/database/postgres/driver.ts");
    const { Client } = loadDriver();
    const neighbour = new Client({
      ...{ host: "127.0.0.1", port: bouncer.port, user: USER, password: PASSWORD, database },
    });
    await neighbour.connect();
    const pids = new Set<unknown>();
    const notes = async (what: string) => {
      const { rows } = await neighbour.query("SELECT author, pg_backend_pid() AS pid FROM note");
      assertEquals(rows.map(({ author }) => author), ["a"], `after ${what}`);
      pids.add(rows[0].pid);
    };
    const { catalogue } = engine;
    await notes("a start");
    await catalogue.add(ITEM);
    await notes("add()");
    for (const [what, ask] of QUESTIONS) {
      await ask(catalogue);
      await notes(what);
    }
    await assertRejects(() => catalogue.add(ITEM), RefusedError, "is taken");
    await notes("a refused add()");
    await catalogue.add({ ...ITEM, token: newToken() });
    await notes("add()");
    assertEquals(pids.size, 1, "the connection is the same for both");
    await neighbour.end();
    await engine.close();
  },
);
