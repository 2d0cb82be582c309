/**
 * Several servers on one PostgreSQL.
 */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { newToken, type Token } from "../../../lib/storage/token.ts";
import {
  DEPRECATED_AT,
  publishTableItems,
  requestTable,
  runRow,
} from "../../server/request_table.ts";
import { openLocal } from "../../support/local_storage.ts";
import { inFolder, media } from "../../support/media_cli.ts";
import { SAMPLE_MP3 } from "../../support/paths.ts";
import { needing, shared } from "../../support/permissions.ts";
import { PGBOUNCER, PgBouncer } from "../../support/pgbouncer.ts";
import { openEngine } from "../../support/postgres_engine.ts";
import { POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { ServerProcess } from "../../support/server.ts";
import { newMetadata } from "../storage_suite.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());
const bouncer = shared(PGBOUNCER, () => PgBouncer.start(postgres()));
const test = needing(...POSTGRES);

/** Milliseconds until every server shows what was published or unpublished. The aim is 1,000. */
const SHOWN = 2_500;

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

for (
  const [name, needs, port] of [
    ["PostgreSQL", POSTGRES, () => postgres().port],
    ["PgBouncer", PGBOUNCER, () => bouncer().port],
  ] as const
) {
  needing(...needs)(
    `a server process on ${name} answers the whole table, HEAD as GET`,
    async (t) => {
      const DATABASE_URL = postgres().urlOf(await postgres().createDatabase(), port());
      await using subject = await openLocal(openEngine(DATABASE_URL));
      const rows = requestTable(await publishTableItems(subject));
      const environment = { DATABASE_URL, DEPRECATED_AT };
      await using server = await ServerProcess.start(environment, subject.folder);
      for (const row of rows) {
        await t.step(
          row.what,
          () =>
            runRow(
              row,
              (method, target, fields) => requestRaw(server.port, method, target, fields),
            ),
        );
      }
    },
  );
}

/** A response of a server, with times in milliseconds. */
interface Answer {
  readonly server: number;
  readonly token: Token;
  readonly sent: number;
  readonly answered: number;
  readonly status: number;
}

/** A change of an item by a command: when it began and ended. */
interface Change {
  readonly token: Token;
  readonly began: number;
  readonly ended: number;
  /** The statuses before and after. */
  readonly statuses: readonly [number, number];
}

needing(...PGBOUNCER)(
  "two servers, one behind PgBouncer, show at once what commands publish and unpublish",
  () =>
    inFolder(async (folder) => {
      const database = await postgres().createDatabase();
      const urls = [postgres().port, bouncer().port].map((port) =>
        postgres().urlOf(database, port)
      );
      const environments = urls.map((DATABASE_URL) => ({ DATABASE_URL, CACHE_TTL: "600" }));
      const [first, second] = environments as [typeof environments[0], typeof environments[0]];
      await using one = await ServerProcess.start(first, folder);
      await using other = await ServerProcess.start(second, folder);

      // Keeps the content in use, so that no GET finds it missing.
      assertEquals((await media(folder, ["publish", SAMPLE_MP3], first)).code, 0);
      const tokens = [newToken(), newToken(), newToken()];
      const answers: Answer[] = [];
      let isOver = false;
      const ask = async (server: number, port: number, method: string, token: Token) => {
        while (!isOver) {
          const sent = performance.now();
          const { status } = await requestRaw(port, method, `/audio/${token}`);
          answers.push({ server, token, sent, answered: performance.now(), status });
          await pause(30);
        }
      };
      const asking = [one, other].flatMap(({ port }, server) =>
        tokens.flatMap((token) => ["HEAD", "GET"].map((method) => ask(server, port, method, token)))
      );

      const changes: Change[] = [];
      const change = async (token: Token, statuses: Change["statuses"], ...args: string[]) => {
        const began = performance.now();
        assertEquals((await media(folder, args, second)).code, 0);
        changes.push({ token, began, ended: performance.now(), statuses });
        await pause(SHOWN + 500);
      };
      await pause(1_000); // so that its absence is cached
      await Promise.all(tokens.map(async (token, index) => {
        await pause(300 * index);
        await change(token, [404, 200], "publish", SAMPLE_MP3, "--token", token);
        await change(token, [200, 410], "unpublish", token);
      }));
      isOver = true;
      await Promise.all(asking);

      let latest = 0;
      for (const { token, began, ended, statuses: [before, after] } of changes) {
        const of = answers.filter((answer) => answer.token === token);
        const isEarly = ({ answered, status }: Answer) => status === after && answered < began;
        assertEquals(of.filter(isEarly), []);
        const isLate = ({ sent, status }: Answer) => status === before && sent > ended;
        for (const { sent } of of.filter(isLate)) latest = Math.max(latest, sent - ended);
        // No server ever goes back, by HEAD or by GET.
        for (const server of [0, 1]) {
          const changed = of.filter((answer) =>
            answer.server === server && answer.status === after
          );
          const since = Math.min(...changed.map(({ answered }) => answered));
          const isBack = ({ sent, status }: Answer) => status === before && sent > since;
          assertEquals(of.filter((answer) => answer.server === server && isBack(answer)), []);
        }
      }
      console.log(`shown ${latest | 0} ms after a command at the latest`);
      assert(latest < SHOWN, `${latest} ms`);
      assertEquals(new Set(answers.map(({ status }) => status)), new Set([404, 200, 410]));
    }),
);

test("a server process under load opens two connections to PostgreSQL at most", async () => {
  const database = await postgres().createDatabase();
  const DATABASE_URL = postgres().urlOf(database);
  await using subject = await openLocal(openEngine(DATABASE_URL));
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1000));
  await subject.storage.close();
  await using server = await ServerProcess.start({ DATABASE_URL, CACHE_TTL: "0" }, subject.folder);
  const counts: number[] = [];
  const asking = Array.from({ length: 100 }, async (_, index) => {
    while (counts.length < 20) {
      const path = index % 3 === 0 ? "/healthz" : `/audio/${index % 3 === 1 ? token : newToken()}`;
      const { status } = await requestRaw(server.port, "HEAD", path);
      assertEquals(status, index % 3 === 2 ? 404 : 200);
    }
  });
  const count = `SELECT count(*) FROM pg_stat_activity WHERE datname = '${database}'`;
  while (counts.length < 20) counts.push(Number((await postgres().query(count))[0]));
  await Promise.all(asking);
  assert(counts.every((count) => count <= 2), `${counts}`);
  assert(counts.some((count) => count > 0), `${counts}`);
});

test("servers that start simultaneously on an empty database all come up", async () => {
  const database = await postgres().createDatabase();
  await postgres().query(
    `CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS
       'BEGIN PERFORM pg_sleep(1); END';
     CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE INDEX')
       EXECUTE FUNCTION slow()`,
    database,
  );
  const DATABASE_URL = postgres().urlOf(database);
  await inFolder(async (folder) => {
    const starts = [1, 2, 3].map(() => ServerProcess.start({ DATABASE_URL }, folder));
    const settled = await Promise.allSettled(starts);
    const statuses = [];
    for (const start of settled) {
      if (start.status === "rejected") continue;
      statuses.push((await requestRaw(start.value.port, "HEAD", "/healthz")).status);
      await start.value.stop();
    }
    assertEquals(settled.filter(({ status }) => status === "rejected"), []);
    assertEquals(statuses, [200, 200, 200]);
  });
});

test("a later release's schema is refused, at startup and while a server runs", async () => {
  const database = await postgres().createDatabase();
  const DATABASE_URL = postgres().urlOf(database);
  await using subject = await openLocal(openEngine(DATABASE_URL));
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1000));
  await subject.storage.close();
  const environment = { DATABASE_URL, CACHE_TTL: "1" };
  const server = await ServerProcess.start(environment, subject.folder);
  const ask = async () => {
    const methods = ["HEAD", "GET"];
    const all = methods.map((method) => requestRaw(server.port, method, `/audio/${token}`));
    return (await Promise.all(all)).map(({ status }) => status);
  };
  assertEquals(await ask(), [200, 200]);

  const [schema] = await postgres().query("SELECT schema FROM catalogue", database);
  await postgres().query("UPDATE catalogue SET schema = schema + 1", database);
  const message = `the database (DATABASE_URL) has version ${Number(schema) + 1} of the schema, ` +
    `but this release supports ${schema} at most: run a later one`;
  const started = await assertRejects(
    () => ServerProcess.start(environment, subject.folder),
    Error,
  );
  assert(started.message.endsWith(`cannot start: postgres: ${message}\n`), started.message);
  const listed = await media(subject.folder, ["list"], environment);
  assertEquals([listed.code, listed.stderr], [1, `media: postgres: ${message}\n`]);
  await pause(1_500);
  assertEquals(await ask(), [503, 503]);

  await postgres().query("UPDATE catalogue SET schema = schema - 1", database);
  await pause(1_500);
  assertEquals(await ask(), [200, 200]);
  const { log } = await server.stop();
  const causes = log.filter(({ route }) => route === "/audio/:token").map(({ cause }) => cause);
  assert(
    causes.length > 0 && causes.every((cause) => String(cause).includes(message)),
    `${causes}`,
  );
});
