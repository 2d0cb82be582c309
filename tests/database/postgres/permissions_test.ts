/**
 * A server on PostgreSQL as operators run it: with the README's permissions, and with TLS as the
 * URL says.
 */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { describeError } from "../../../lib/log/log.ts";
import { newMetadata } from "../../storage/storage_suite.ts";
import { openLocal } from "../../support/local_storage.ts";
import { fromRoot } from "../../support/paths.ts";
import { needing, program, shared } from "../../support/permissions.ts";
import { freePort } from "../../support/ports.ts";
import { PASSWORD, POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { openEngine } from "../../support/postgres_engine.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { ServerProcess } from "../../support/server.ts";

const NEEDS = [...POSTGRES, program("openssl")];
const test = needing(...NEEDS);
const here = shared(NEEDS, () => PostgresServer.start({ certifiedFor: ["IP:127.0.0.1"] }));
const elsewhere = shared(NEEDS, () => PostgresServer.start({ certifiedFor: ["DNS:a.test"] }));

/** Variables that PostgreSQL's own programs read, but our server does not. */
const PG_VARIABLES = {
  PGHOST: "192.0.2.1",
  PGHOSTADDR: "192.0.2.1",
  PGPORT: "1",
  PGUSER: "nobody",
  PGPASSWORD: "none",
  PGDATABASE: "none",
  PGSSLMODE: "disable",
  PGSSLROOTCERT: "/nowhere",
  PGOPTIONS: "-c default_transaction_read_only=on",
  PGAPPNAME: "another",
  PGCLIENTENCODING: "LATIN1",
  PGPASSFILE: "/nowhere",
  PGSERVICE: "none",
  PGBINARY: "1",
  NODE_PG_FORCE_NATIVE: "1",
};

/**
 * The flags of the README's production command, with another folder and other hosts to connect to.
 */
async function productionFlags(port: number, folder: string, database: number): Promise<string[]> {
  const readme = await Deno.readTextFile(fromRoot("README.md"));
  const [, flags = ""] = /\n +deno run ([^`]*?)\\?\n +main\.ts\n/.exec(readme) ?? [];
  assertMatch(flags, / -P .*--allow-net=0\.0\.0\.0:8000 .*--allow-read=\.env,\/srv\/media /s);
  return flags.replaceAll("\\", "").trim().split(/\s+/).map((flag) =>
    flag.replace("0.0.0.0:8000", `127.0.0.1:${port},127.0.0.1:${database}`)
      .replace("/srv/media", folder)
  );
}

/** The URL of a database, trusting only one certificate. */
const encrypted = (url: string, certificate: string, mode = "verify-full") =>
  `${url}?sslmode=${mode}&sslrootcert=${encodeURIComponent(certificate)}`;

test("a server with the README's permissions works on PostgreSQL with TLS, ignoring PG… variables", async () => {
  const url = here().urlOf(await here().createDatabase());
  await using subject = await openLocal(openEngine(encrypted(url, here().certificate)));
  const { folder } = subject;
  const { token } = await subject.publish(newMetadata(), new Uint8Array(1000));
  await subject.close();
  await Deno.copyFile(here().certificate, `${folder}/certificate.pem`);

  const port = freePort();
  const environment = {
    ...PG_VARIABLES,
    DATABASE_URL: encrypted(url, `${folder}/certificate.pem`, "require"),
    PORT: String(port),
  };
  const flags = await productionFlags(port, folder, here().port);
  const server = await ServerProcess.start(environment, folder, { flags });
  for (const method of ["HEAD", "GET"]) {
    assertEquals((await requestRaw(port, method, `/audio/${token}`)).status, 200);
  }
  const connections = `SELECT DISTINCT ssl, application_name FROM pg_stat_activity
    JOIN pg_stat_ssl USING (pid) WHERE usename = 'media'`;
  assertEquals(await here().query(connections), ["t|media-head"]);
  const { code, log, stderr } = await server.stop();
  assertEquals([code, log.map(({ event }) => event)], [0, ["start", "stop"]]);
  assertEquals(stderr.trimEnd().split("\n").length, 2, stderr); // no warning of pg
  const calls = "SELECT sum(calls) FROM media_head_usage";
  assertEquals(await here().query(calls, new URL(url).pathname.slice(1)), ["2"]);
});

test("a PostgreSQL that the URL says not to trust is refused", async () => {
  const rows: [url: string, reason: RegExp][] = [
    [encrypted(here().urlOf("postgres"), elsewhere().certificate), /certificate/i],
    [encrypted(elsewhere().urlOf("postgres"), elsewhere().certificate), /certificate/i],
    [`${here().urlOf("postgres")}?sslmode=require`, /certificate/i],
    [`${here().urlOf("postgres")}?sslmode=disable`, /no encryption/],
    [`postgres://media:none@127.0.0.1:${elsewhere().port}/postgres`, /no encryption/],
  ];
  for (const [DATABASE_URL, reason] of rows) {
    const message = describeError(
      await assertRejects(() => openEngine(DATABASE_URL), StorageError),
    );
    assertMatch(message, /: postgres: the database \(DATABASE_URL\) cannot be reached, /);
    assertMatch(message, reason);
    assert(!message.includes(PASSWORD), message);
  }
});
