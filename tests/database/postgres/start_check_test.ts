/** What a start and its `--check` say of PostgreSQL. A check writes nothing. */

import { assertEquals, assertMatch } from "@std/assert";
import { inFolder } from "../../support/media_cli.ts";
import { fromRoot } from "../../support/paths.ts";
import { needing, program, shared } from "../../support/permissions.ts";
import { PASSWORD, POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { createTables } from "../../support/postgres_engine.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { runMain, ServerProcess } from "../../support/server.ts";

const server = shared(POSTGRES, () => PostgresServer.start());

/** Runs a start, or its check. Neither listens, because both fail. */
const run = (args: string[], folder: string, DATABASE_URL: string) =>
  runMain(args, folder, { HOST: "127.0.0.1", PORT: "0", DATABASE_URL });

/** Checks what a start and its check say. */
async function checkBoth(url: string, checked: RegExp, started: RegExp): Promise<void> {
  await inFolder(async (folder) => {
    const check = await run(["--check"], folder, url);
    assertMatch(check.stderr, checked);
    assertEquals([check.code, check.stderr.trim().split("\n").length], [1, 1], check.stderr);
    const start = await run([], folder, url);
    assertMatch(start.stderr, started);
    assertEquals(start.code, 1);
  });
}

needing(...POSTGRES)("--check knows a role that may not write, and writes nothing", async () => {
  const database = await server().createDatabase();
  await createTables(server().urlOf(database));
  const query = (sql: string) => server().query(sql, database);
  await query(`CREATE ROLE reader LOGIN PASSWORD '${PASSWORD}'`);
  const url = new URL(server().urlOf(database));
  url.username = "reader";
  const grants: [grant: string, started: RegExp][] = [
    ["SELECT ON ALL TABLES IN SCHEMA public", /cannot be written \(permission denied/],
    [
      "INSERT, UPDATE ON media_head_catalogue",
      /cannot be written \(permission denied for table media_head_session\)/,
    ],
  ];
  for (const [grant, started] of grants) {
    await query(`GRANT ${grant} TO reader`);
    await checkBoth(
      url.href,
      /cannot start: postgres: the user "reader" may not write to the table "media_head_ledger"; let its owner run: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "public" TO "reader"/,
      started,
    );
  }
  const page = await Deno.readTextFile(fromRoot("lib/server/README.md"));
  await query((/GRANT [^;`]*/.exec(page)?.[0] ?? "").replace("ROLE", "reader"));
  await inFolder(async (folder) => {
    const { code, stderr: err } = await run(["--check"], folder, url.href);
    assertEquals([code, err], [0, ""]);
    assertEquals(await query("SELECT count(*) FROM media_head_session"), ["0"]);
    await using process = await ServerProcess.start({ DATABASE_URL: url.href }, folder);
    assertEquals((await requestRaw(process.port, "HEAD", "/healthz")).status, 200);
  });
});

needing(...POSTGRES)(
  "a start and its check say why no tables can be created",
  () =>
    inFolder(async (folder) => {
      const database = await server().createDatabase();
      await server().query(`ALTER DATABASE ${database} OWNER TO postgres`); // not to the user
      const url = server().urlOf(database);
      const place = `schema "public" of "postgres://127.0.0.1:${server().port}/${database}"`;
      const grant = `GRANT CREATE ON SCHEMA "public" TO "${USER}"`;
      const rows = [
        [url, `the user "${USER}" may not create tables in ${place}; let its owner run: ${grant}`],
        [
          `${url}?options=-c%20search_path%3Dnone`,
          'the database (DATABASE_URL) would use no schema; expected "none": create it, and give the ' +
          "user USAGE on it. If a pooler drops options from the URL, leave them out, and run ALTER " +
          "ROLE … SET search_path",
        ],
      ] as const;
      for (const [url, reason] of rows) {
        for (const args of [["--check"], []]) {
          const { code, stderr: err } = await run(args, folder, url);
          assertEquals([code, err], [1, `media-head cannot start: postgres: ${reason}\n`]);
        }
      }
      await server().query(grant, database);
      assertEquals((await run(["--check"], folder, url)).code, 0);
    }),
);

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
      const { code, stdout: out, stderr: err } = await run(["--check"], folder, url);
      assertEquals([code, err], [0, ""]);
      assertMatch(out, /^Warning: no record of calls: postgres: the database .* cannot be /m);
    });
    await held;
  },
);
