/** What the URL of a database says, as a server, a command and an application read it. */

import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { postgresAt } from "../../../lib/database/place.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { openUsage } from "../../../lib/usage/mod.ts";
import { inFolder, media } from "../../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3 } from "../../support/paths.ts";
import { needing, program, shared } from "../../support/permissions.ts";
import { PGBOUNCER, startPgBouncer } from "../../support/pgbouncer.ts";
import { PASSWORD, POSTGRES, PostgresServer, USER } from "../../support/postgres.ts";
import { requestRaw } from "../../support/raw_http.ts";
import { ServerProcess, storageIn } from "../../support/server.ts";

const NEEDS = [...POSTGRES, program("openssl")];
const test = needing(...NEEDS);
const plain = shared(NEEDS, () => PostgresServer.start());
const withTls = shared(NEEDS, () => PostgresServer.start({ certifiedFor: ["IP:127.0.0.1"] }));

const ROUTES = { "/v1": definePolicy({ deprecatedAt: "2026-01-01" }) };

/** Runs a command whose folder has no other storage. */
const run = (folder: string, DATABASE_URL: string, args: string[]) =>
  media(folder, args, { DATABASE_URL });

needing("processes", ...PGBOUNCER)(
  "a schema that is not there, or that a pooler drops from the URL, is refused, and nothing is created",
  () =>
    inFolder(async (folder) => {
      const database = await plain().createDatabase();
      const options = "?options=-c%20search_path%3Dstage";
      const [url, parts] = [plain().urlOf(database), { CONTENT: "none" }];
      const tables = () =>
        plain().query("SELECT relname FROM pg_class WHERE relname ~ '^media_head'", database);
      const refusals = async (DATABASE_URL: string, used: string) => {
        const expected = `would use ${used}; expected "stage": create it`;
        const { code, stderr } = await run(folder, DATABASE_URL, ["list"]);
        assertEquals(code, 1);
        assertStringIncludes(stderr, expected);
        const start = () => ServerProcess.start({ DATABASE_URL, ...parts }, folder);
        assertStringIncludes((await assertRejects(start, Error)).message, expected);
        assertEquals(await tables(), []);
      };
      await refusals(url + options, "no schema");
      await plain().query(`CREATE SCHEMA stage AUTHORIZATION ${USER}`, database);
      await using bouncer = await startPgBouncer(
        plain(),
        "ignore_startup_parameters = options",
      );
      const pooled = plain().urlOf(database, bouncer.port);
      await refusals(pooled + options, 'the schema "public"');
      await plain().query(
        `ALTER ROLE ${USER} IN DATABASE ${database} SET search_path = stage`,
        database,
      );
      await plain().query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}' AND pid <> pg_backend_pid()`,
        database,
      );
      await using _server = await ServerProcess.start({ DATABASE_URL: pooled, ...parts }, folder);
      assertEquals((await run(folder, pooled, ["list"])).code, 0);
    }),
);

test("a schema or misspelling in the URL is refused, and the form that the refusal names keeps two stages apart", () =>
  inFolder(async (folder) => {
    const database = await plain().createDatabase();
    const url = plain().urlOf(database);
    for (const [name, expected] of [["schema", "options=.*stage_a"], ["sslmod", "sslmode"]]) {
      const mistaken = `${url}?${name}=stage_a`;
      const { code, stderr } = await run(folder, mistaken, ["list"]);
      assertEquals(code, 2);
      assertMatch(stderr, new RegExp(`^DATABASE_URL: "${name}" .* "${expected}"\n$`));
      const start = () => ServerProcess.start({ DATABASE_URL: mistaken }, folder);
      assertStringIncludes((await assertRejects(start, Error)).message, stderr.trim());
      const used = await assertRejects(() => openUsage(mistaken, { routes: ROUTES }), Error);
      assertMatch(used.message, new RegExp(`^openUsage\\(\\): "${name}" `));
    }
    const owned = `CREATE SCHEMA stage_a AUTHORIZATION ${USER}`;
    await plain().query(`${owned}; ${owned.replace("_a", "_b")}`, database);
    const environment = (stage: string) => ({
      DATABASE_URL: `${url}?options=-c%20search_path%3D${stage}`,
      CONTENT: `${folder}/${stage}`,
    });
    await using _server = await ServerProcess.start(environment("stage_a"), folder);
    const { stderr, stdout } = await media(folder, ["publish", SAMPLE_MP3], environment("stage_b"));
    assertMatch(stdout, /^Published audio /);
    assertEquals(stderr, "");
    const count = (stage: string, table: string) =>
      plain().query(`SELECT count(*) FROM ${stage}.${table}`, database);
    assertEquals([
      await count("stage_a", "media_head_item"),
      await count("stage_b", "media_head_item"),
    ], [["0"], ["1"]]);
    assertEquals(await count("stage_a", "media_head_session"), ["1"]);
    const noLedger = "SELECT to_regclass('stage_b.media_head_session') IS NULL";
    assertEquals(await plain().query(noLedger, database), ["t"]);
  }));

test("a message of what was created names the database and the schema", async () => {
  const database = await plain().createDatabase();
  const url = plain().urlOf(database);
  await plain().query(`CREATE SCHEMA other AUTHORIZATION ${USER}`, database);
  const { openEngine } = await import("../../../lib/storage/engines/postgres.ts");
  for (const schema of ["public", "other"]) {
    const created: string[] = [];
    const options = { onCreate: (name: string) => void created.push(name) };
    const chosen = schema === "public" ? url : `${url}?options=-c%20search_path%3D${schema}`;
    await (await openEngine(postgresAt(chosen), options)).close();
    const place = `schema "${schema}" of "postgres://127.0.0.1:${plain().port}/${database}"`;
    assertEquals(created, [`the catalogue in ${place} (DATABASE_URL)`]);
  }
});

test("parameters that nothing reads are warned of, once, whatever the case of the scheme", () =>
  inFolder(async (folder) => {
    const url = withTls().urlOf(await withTls().createDatabase()).replace("postgres", "Postgres");
    const certificate = encodeURIComponent(withTls().certificate);
    const DATABASE_URL = `${url}?sslmode=require&sslrootcert=${certificate}` +
      "&channel_binding=require&pgbouncer=true&connection_limit=1&pgbouncer=true";
    const names = '"channel_binding", "pgbouncer", "connection_limit"';
    const warning = (setting: string) => `${setting}: nothing reads ${names} in the URL`;
    const { code, stderr } = await run(folder, DATABASE_URL, ["import", "/dev/null"]);
    assertEquals([code, stderr], [0, `media: warning: ${warning("DATABASE_URL")}\n`]);
    const server = await ServerProcess.start({ DATABASE_URL }, folder, { flags: ["-A"] });
    const { log } = await server.stop();
    const warnings = log.filter(({ event }) => event === "warning").map(({ message }) => message);
    assertEquals(warnings, [warning("DATABASE_URL")]);
    const logged: unknown[] = [];
    const log_ = (event: { event: string; message?: unknown }) =>
      event.event === "warning" && logged.push(event.message);
    const usage = await openUsage(DATABASE_URL, { routes: ROUTES, log: log_ });
    assertEquals(usage.fault, undefined);
    await usage.close();
    assertEquals(logged, [warning("openUsage()")]);
  }));

test("a socket is reached by the URLs that libpq takes", () =>
  inFolder(async (folder) => {
    const database = await plain().createDatabase();
    const socket = plain().folder;
    const rows = [
      `postgresql://${USER}:${PASSWORD}@/${database}?host=${socket}&port=${plain().port}`,
      `postgres:///${database}?host=${socket}&port=${plain().port}&user=${USER}`,
      `postgres://${USER}@${encodeURIComponent(socket)}:${plain().port}/${database}`,
    ];
    for (const url of rows) {
      const { code, stderr } = await run(folder, url, ["import", "/dev/null"]);
      assertEquals([code, stderr], [0, ""], url);
      await (await openUsage(url, { routes: ROUTES, log() {} })).close();
    }
    // Deno opens a socket as it opens a file.
    const environment = { DATABASE_URL: rows[0] as string };
    const start = (flags: string[]) => ServerProcess.start(environment, folder, { flags });
    const task = ["--quiet", "--no-prompt", `--config=${fromRoot("deno.json")}`, "-P"];
    const { message } = await assertRejects(() => start(task), Error);
    assertMatch(message, / permissions .*\.s\.PGSQL\.\d+ and /);
    const flags = /-P (--allow-read=\S+) (--allow-write=\S+) main\.ts/.exec(message) ?? [];
    const net = `--allow-net=127.0.0.1,unix:${socket}/.s.PGSQL.${plain().port}`;
    const args = [
      "run",
      ...task,
      `--deny-read=${fromRoot(".env")}`,
      fromRoot("main.ts"),
      "--check",
    ];
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args,
      env: { ...storageIn(folder), ...environment, NO_COLOR: "1" },
    }).output();
    assertEquals(code, 1);
    assertMatch(
      new TextDecoder().decode(stderr),
      / permissions .*\.s\.PGSQL\.\d+ and /,
    );
    for (const more of [[], [net]]) {
      await using server = await start([...task, ...flags.slice(1), ...more]);
      assertEquals((await requestRaw(server.port, "HEAD", "/healthz")).status, 200);
    }
  }));
