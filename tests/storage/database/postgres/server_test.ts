/** Several servers on one PostgreSQL. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { newToken } from "../../../../lib/storage/token.ts";
import { openLocal } from "../../../support/local_storage.ts";
import { media } from "../../../support/media_cli.ts";
import { needing, shared } from "../../../support/permissions.ts";
import { openEngine } from "../../../support/postgres_engine.ts";
import { POSTGRES, PostgresServer } from "../../../support/postgres.ts";
import { requestRaw } from "../../../support/raw_http.ts";
import { ServerProcess } from "../../../support/server.ts";
import { until } from "../../../support/within.ts";
import { newMetadata } from "../../storage_suite.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());
const test = needing(...POSTGRES);

test("a server process under load opens two connections to PostgreSQL at most", async () => {
  const database = await postgres().createDatabase();
  const DATABASE_URL = postgres().urlOf(database);
  await using subject = await openLocal(openEngine(DATABASE_URL));
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1000));
  await subject.storage.close();
  await using server = await ServerProcess.start({ DATABASE_URL }, subject.folder);
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

test("a later release's schema is refused, at startup and while a server runs", async () => {
  const database = await postgres().createDatabase();
  const DATABASE_URL = postgres().urlOf(database);
  await using subject = await openLocal(openEngine(DATABASE_URL));
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1000));
  await subject.storage.close();
  const environment = { DATABASE_URL };
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
    `but this release supports only ${schema}: run a later one`;
  const started = await assertRejects(
    () => ServerProcess.start(environment, subject.folder),
    Error,
  );
  assert(started.message.endsWith(`cannot start: postgres: ${message}\n`), started.message);
  const listed = await media(subject.folder, ["list"], environment);
  assertEquals([listed.code, listed.stderr], [1, `media: postgres: ${message}\n`]);
  await until("lookups that are not reused", async () => (await ask())[0] === 503);
  assertEquals(await ask(), [503, 503]);

  await postgres().query("UPDATE catalogue SET schema = schema - 1", database);
  await until("the schema to be read again", async () => (await ask())[0] === 200);
  assertEquals(await ask(), [200, 200]);
  const { log } = await server.stop();
  const causes = log.filter(({ route }) => route === "/audio/:token").map(({ cause }) => cause);
  assert(
    causes.length > 0 && causes.every((cause) => String(cause).includes(message)),
    `${causes}`,
  );
});
