/** `--check` on PostgreSQL: what a start would fail on, without writing anything. */

import { assertEquals, assertMatch } from "@std/assert";
import { dirname } from "node:path";
import { inFolder } from "../../support/media_cli.ts";
import { needing, program, shared } from "../../support/permissions.ts";
import { command, PASSWORD, POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { openEngine } from "../../support/postgres_engine.ts";
import { freePort } from "../../support/ports.ts";
import { MAIN } from "../../support/routes.ts";
import { storageIn, taskFlags } from "../../support/server.ts";
import { until, within } from "../../support/within.ts";

const server = shared(POSTGRES, () => PostgresServer.start());

/** Runs a start, or its check. Neither listens, because both fail. */
async function run(args: string[], folder: string, DATABASE_URL: string) {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", ...taskFlags(MAIN, dirname(folder)), MAIN, ...args],
    env: { ...storageIn(folder), NO_COLOR: "1", HOST: "127.0.0.1", PORT: "0", DATABASE_URL },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const { code, stderr } = await within("the end", process.output(), { process });
  return { code, err: new TextDecoder().decode(stderr) };
}

/** Checks what a start and its check say. */
async function checkBoth(url: string, checked: RegExp, started: RegExp): Promise<void> {
  await inFolder(async (folder) => {
    const check = await run(["--check"], folder, url);
    assertMatch(check.err, checked);
    assertEquals([check.code, check.err.trim().split("\n").length], [1, 1], check.err);
    const start = await run([], folder, url);
    assertMatch(start.err, started);
    assertEquals(start.code, 1);
  });
}

needing(...POSTGRES)("--check knows a role that may not write, and writes nothing", async () => {
  const database = await server().createDatabase();
  await (await openEngine(server().urlOf(database))).close();
  await server().query(
    `CREATE ROLE reader LOGIN PASSWORD '${PASSWORD}';
     GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader`,
    database,
  );
  const url = new URL(server().urlOf(database));
  url.username = "reader";
  await checkBoth(
    url.href,
    /cannot start: postgres: the user "reader" may not write to the table "media_head_ledger"; let its owner run: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "public" TO "reader"/,
    /cannot be written \(permission denied/,
  );
  await server().query(
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reader",
    database,
  );
  await inFolder(async (folder) => {
    const { code, err } = await run(["--check"], folder, url.href);
    assertEquals([code, err], [0, ""]);
  });
  assertEquals(await server().query("SELECT count(*) FROM media_head_session", database), ["0"]);
});

needing(...POSTGRES, program("pg_basebackup"))("--check knows a hot standby", async () => {
  const database = await server().createDatabase();
  await (await openEngine(server().urlOf(database))).close();
  const folder = await Deno.makeTempDir({ prefix: "media-head-standby-" });
  await Deno.chmod(folder, 0o777);
  const data = `${folder}/data`;
  const source = [
    "--host",
    server().folder,
    "--port",
    String(server().port),
    "--username",
    "postgres",
  ];
  const copying = command("pg_basebackup", [
    ...source,
    ...["--pgdata", data, "--write-recovery-conf", "--checkpoint", "fast"],
  ]).spawn();
  assertEquals((await copying.status).code, 0);
  const port = freePort();
  const standby = command("postgres", [
    ...["-D", data, "-p", String(port), "-c", `unix_socket_directories=${folder}`],
    ...["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=100"],
  ]).spawn();
  try {
    const url = server().urlOf(database, port);
    const isReady = () =>
      openEngine(url, { mustExist: true }).then(async (engine) => {
        await engine.close();
        return true;
      }, () => false);
    await until("the standby", isReady);
    await checkBoth(url, /is read-only, or a standby/, /cannot start: postgres: /);
  } finally {
    standby.kill("SIGQUIT");
    await within("the end of the standby", standby.status);
    await Deno.remove(folder, { recursive: true });
  }
});
