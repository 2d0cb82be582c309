/** `--check` on PostgreSQL: what a start would fail on, without writing anything. */

import { assertEquals, assertMatch } from "@std/assert";
import { dirname } from "node:path";
import { inFolder } from "../../support/media_cli.ts";
import { needing, program, shared } from "../../support/permissions.ts";
import { PASSWORD, POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { createTables } from "../../support/postgres_engine.ts";
import { MAIN } from "../../support/routes.ts";
import { storageIn, taskFlags } from "../../support/server.ts";
import { within } from "../../support/within.ts";

const server = shared(POSTGRES, () => PostgresServer.start());

/** Runs a start, or its check. Neither listens, because both fail. */
async function run(args: string[], folder: string, DATABASE_URL: string) {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", ...taskFlags(MAIN, dirname(folder)), MAIN, ...args],
    env: { ...storageIn(folder), NO_COLOR: "1", HOST: "127.0.0.1", PORT: "0", DATABASE_URL },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const { code, stdout, stderr } = await within("the end", process.output(), { process });
  const [out = "", err = ""] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out, err };
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
  await createTables(server().urlOf(database));
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
  await createTables(server().urlOf(database));
  await using standby = await PostgresServer.copy(server(), "standby");
  const url = standby.urlOf(database);
  await checkBoth(url, /is read-only, or a standby/, /cannot start: postgres: /);
});

needing(...POSTGRES)(
  "--check warns of a ledger that does not answer, since a start goes on",
  async () => {
    const database = await server().createDatabase();
    const url = server().urlOf(database);
    await createTables(url);
    const held = server().query("BEGIN; LOCK media_head_ledger; SELECT pg_sleep(15)", database);
    await inFolder(async (folder) => {
      const { code, out, err } = await run(["--check"], folder, url);
      assertEquals([code, err], [0, ""]);
      assertMatch(out, /^Warning: no record of calls: postgres: the database .* cannot be /m);
    });
    await held;
  },
);
