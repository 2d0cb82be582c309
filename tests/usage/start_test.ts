/** Starts without the ledger, and what ends a start, because waiting does not mend it. */

import { definePolicy } from "@media-head/lifecycle";
import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { postgresAt } from "../../lib/database/place.ts";
import { PostgresDatabase } from "../../lib/database/postgres/database.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { newToken } from "../../lib/storage/token.ts";
import { type LogEvent, openUsage, type UsageOptions } from "../../lib/usage/mod.ts";
import { LEDGER } from "../../lib/usage/record/schema.ts";
import { fakeTimers } from "../support/fake_timers.ts";
import { askGate, CALLED } from "../support/gate.ts";
import { inFolder, testsInFolder } from "../support/media_cli.ts";
import { LINUX, needing, program, shared } from "../support/permissions.ts";
import { PASSWORD, POSTGRES, PostgresServer, USER } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { recordOnSqlite, REDIRECTING, startRecorded } from "../support/recorded_processes.ts";
import { Relay } from "../support/relay.ts";
import type { ServerProcess } from "../support/server.ts";
import { until } from "../support/within.ts";

const test = needing(...POSTGRES);
const testInFolder = testsInFolder("files");
const postgres = shared(POSTGRES, () => PostgresServer.start());

const POLICY = definePolicy({ deprecatedAt: "2026-11-21" });
const ROUTES = { "/v1": POLICY, "/v2": POLICY };

/** Opens a record, with what the application logs. */
async function open(database: string, options: Partial<UsageOptions> = {}) {
  const events: LogEvent[] = [];
  const log = (event: LogEvent) => void events.push(event);
  const usage = await openUsage(database, { routes: ROUTES, log, ...options });
  const call = async (route: string) => {
    const handler = usage.withLifecycle(() => new Response("old"), route);
    return await (await handler(new Request(`http://test${route}`))).text();
  };
  return { usage, events, call };
}

const UNREGISTERED = "no record of calls: the process is not registered yet (see the log)";

/** What keeps a ledger from being opened, until the returned function is called. */
type Away = () => Promise<() => unknown>;

/** Starts an application without its ledger, which comes back later. */
async function startWithout(database: string, away: Away): Promise<void> {
  const restore = await away();
  const { usage, events, call } = await open(database);
  const { session } = usage;
  assertEquals(usage.fault, UNREGISTERED);
  assertEquals([await call("/v1"), await call("/v2")], ["old", "old"]);
  await until("the log", () => events.some(({ event }) => event === "error"));
  assertEquals(events.filter(({ event }) => event !== "error"), [], "no session yet");
  await restore();
  await until("the registration", () => usage.fault === undefined);
  assertEquals(usage.session, session);
  assertEquals([events.at(-1)?.event, events.at(-1)?.["session"]], ["session", session]);
  await usage.close();
  const [status, text] = await askGate(database);
  assertEquals(status, CALLED, text);
  assertMatch(text, /^Still called: 2 calls to \/v1 and \/v2 by 1 client /);
}

/** Creates a ledger at a path, and returns what locks it. */
async function lockable(path: string): Promise<Away> {
  await (await open(`sqlite:${path}`)).usage.close();
  return () => {
    const file = new DatabaseSync(path);
    file.exec("BEGIN EXCLUSIVE; UPDATE media_head_ledger SET id = id");
    return Promise.resolve(() => file.close());
  };
}

testInFolder(
  "an application starts though its SQLite file is locked, and registers later",
  async (folder) => {
    const path = `${folder}/calls.sqlite`;
    await startWithout(`sqlite:${path}`, await lockable(path));
  },
);

test("an application starts though PostgreSQL is down or frozen, and registers later", async () => {
  await using server = await PostgresServer.start();
  const down = async () => {
    await server.stop();
    return () => server.launch();
  };
  const frozen = () => {
    server.freeze();
    return Promise.resolve(() => server.thaw());
  };
  for (const away of [down, frozen]) {
    await startWithout(server.urlOf(await server.createDatabase()), away);
  }
  const name = await server.createDatabase();
  const restore = await down();
  const { usage, events } = await open(`${server.urlOf(name)}?pool=5`);
  await restore();
  await until("the registration", () => usage.fault === undefined); // after several attempts
  await usage.close();
  const warnings = events.filter(({ event }) => event === "warning");
  const messages = warnings.map(({ message }) => message);
  assertEquals(messages, ['openUsage(): nothing reads "pool" in the URL']);
});

needing("processes")(
  "a server starts though its ledger is locked, and says so",
  () =>
    inFolder(async (folder) => {
      const place = recordOnSqlite(folder);
      const health = async ({ port }: ServerProcess) =>
        new TextDecoder().decode((await requestRaw(port, "GET", "/healthz")).content);
      await (await startRecorded(folder, place)).stop();
      const locked = new DatabaseSync(`${folder}/catalogue.sqlite-ledger`);
      locked.exec("BEGIN IMMEDIATE");
      const server = await startRecorded(folder, place);
      try {
        for (const method of ["HEAD", "GET"]) {
          const { status } = await requestRaw(server.port, method, `/audio/${newToken()}`);
          assertEquals(status, 308);
        }
        await until("the fault", async () => await health(server) === `ok, but ${UNREGISTERED}\n`);
        locked.close();
        await until("the registration", async () => await health(server) === "ok\n");
      } finally {
        const { log } = await server.stop();
        const events = log.map(({ event }) => event).filter((event) => event !== "warning");
        assertEquals(events, ["error", "start", "session", "stop"]);
      }
      const [status, text] = await askGate(place.url);
      assertEquals(status, CALLED, text);
      assertMatch(text, /^Still called: 2 calls to \/audio\/:token /);
    }),
);

testInFolder("an application that ends unregistered says so, and what was lost", async (folder) => {
  const path = `${folder}/calls.sqlite`;
  const unlock = await (await lockable(path))();
  using timers = fakeTimers();
  const { usage, events, call } = await timers.during(open(`sqlite:${path}`));
  await call("/v1");
  await timers.during(usage.close());
  assert(timers.now() >= 10_000);
  await unlock();
  const messages = events.flatMap(({ message }) => message === undefined ? [] : [message]);
  assertEquals(messages, [
    "the process stops, and could not be registered yet: no verdict knows of it",
    "1 call could not be recorded yet",
  ]);
  while (usage.fault !== undefined) await timers.pass(1_000);
  const [status, text] = await askGate(`sqlite:${path}`);
  assertEquals(status, CALLED, text);
});

testInFolder(
  "a start fails for what waiting does not mend on SQLite, and names it",
  async (folder) => {
    await (await open(`sqlite:${folder}/later`)).usage.close();
    {
      using later = new DatabaseSync(`${folder}/later`);
      later.exec(`PRAGMA user_version = ${LEDGER.version + 1}`);
    }
    {
      using other = new DatabaseSync(`${folder}/other`);
      other.exec("CREATE TABLE songs (id)");
    }
    await Deno.writeTextFile(`${folder}/text`, "no database".repeat(1_000));
    await Deno.mkdir(`${folder}/folder`);
    const rows: [path: string, said: RegExp][] = [
      ["none/calls.sqlite", /\(The folder ".*\/none" does not exist; .* create it\)$/],
      ["text/calls.sqlite", /cannot be opened \(.+\)$/],
      ["folder", /cannot be opened \(.+\)$/],
      ["text", /cannot be opened \(.*file is not a database.*\)$/],
      ["other", /\(It is not a ledger of media-head: choose another path, or move it away\)$/],
      ["later", /\(It has version \d+ of the ledger's schema, .* only \d+: run a later one\)$/],
    ];
    for (const [path, said] of rows) {
      const opening = () => open(`sqlite:${folder}/${path}`, { log() {} });
      assertMatch((await assertRejects(opening, Error)).message, said);
    }
    await assertRejects(() => Deno.stat(`${folder}/none`), Deno.errors.NotFound);
  },
);

needing("processes", LINUX, program("setpriv"))(
  "a start fails if the ledger's file may not be written",
  () =>
    inFolder(async (folder) => {
      const place = recordOnSqlite(folder);
      await (await startRecorded(folder, place)).stop();
      await Deno.chmod(`${folder}/catalogue.sqlite-ledger`, 0o400);
      const capabilities = "--bounding-set=-dac_override,-dac_read_search"; // of root
      const runner = Deno.uid() === 0 ? ["setpriv", capabilities] : [];
      const starting = () => startRecorded(folder, place, REDIRECTING, { runner });
      const { message } = await assertRejects(starting, Error);
      assertMatch(message, /media-head cannot start: .*catalogue\.sqlite-ledger.* cannot be /);
    }),
);

test("a start fails for what waiting does not mend on PostgreSQL, without a password", async () => {
  const name = await postgres().createDatabase();
  const url = postgres().urlOf(name);
  const later = await postgres().createDatabase();
  await (await open(postgres().urlOf(later))).usage.close();
  await postgres().query("UPDATE media_head_ledger SET schema = schema + 1", later);
  const rows: [database: string, message: RegExp][] = [
    [url.replace(PASSWORD, "wrong-secret"), /\(password authentication failed for user "media"\)$/],
    [url.replace(name, "none"), /\(database "none" does not exist\)$/],
    [url.replace(PASSWORD, "se#cret"), /: .*"%23"$/],
    [url.replace(PASSWORD, "1#cret"), /: .*"%23"$/],
    [postgres().urlOf(later), / has version \d+ of the ledger's schema, .*: run a later one$/],
    [`${url}?sslmode=require`, /\(The server does not support SSL connections\)$/],
  ];
  for (const [database, message] of rows) {
    const error = await assertRejects(() => open(database, { log() {} }), Error);
    assertMatch(error.message, message);
    assertEquals(/wrong-secret|cret/.test(error.message), false, error.message);
  }
});

needing(...POSTGRES, "environment")(
  "the password is asked for at each connection, and commands take PGPASSWORD",
  async () => {
    await using server = await PostgresServer.start();
    const database = server.urlOf(await server.createDatabase()).replace(`:${PASSWORD}`, "");
    const passwords = [PASSWORD, "second-password"];
    const asked: string[] = [];
    const password = () => {
      const [current = ""] = passwords;
      asked.push(current);
      return asked.length % 2 === 0 ? current : Promise.resolve(current);
    };
    const { usage, call } = await open(database, { password });
    await call("/v1");
    // Another password, and no connection that knew the first one.
    passwords.shift();
    await server.query(`ALTER ROLE ${USER} PASSWORD '${passwords[0]}';
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${USER}'`);
    await call("/v2");
    await usage.close();
    assertEquals(usage.fault, undefined);
    assertEquals([...new Set(asked)], [PASSWORD, "second-password"]);

    Deno.env.set("PGPASSWORD", "second-password");
    try {
      const [status, text] = await askGate(database);
      assertEquals(status, CALLED);
      assertMatch(text, /^Still called: 2 calls to \/v1 and \/v2 by 1 client /);
    } finally {
      Deno.env.delete("PGPASSWORD");
    }
  },
);

test("a connection without a password says what to set, and ends at once", async () => {
  // By default, PostgreSQL itself would end it after a minute.
  const settings = { authentication_timeout: "600" };
  await using server = await PostgresServer.start({ settings });
  await using relay = new Relay(server.port);
  const database = server.urlOf(await server.createDatabase(), relay.port)
    .replace(`:${PASSWORD}`, "");
  const rows: [password: UsageOptions["password"], message: RegExp][] = [
    [undefined, /\(it asks for a password: set PGPASSWORD\)$/],
    [() => "", /\(password: expected a function that returns the password, got an empty one\)$/],
    [() => undefined as unknown as string, / returns the password, got undefined\)$/],
    [() => 7 as unknown as string, / returns the password, got number\)$/],
  ];
  for (const [password, message] of rows) {
    const error = await assertRejects(() => open(database, { password, log() {} }), Error);
    assertMatch(error.message, message);
    await until("the end of the connection", () => relay.connections === 0);
  }
  // What gives out passwords may be away for a while.
  for (const reason of ["no token", undefined]) {
    let isAway = true;
    const password = () => isAway ? Promise.reject(reason) : PASSWORD;
    const { usage, events } = await open(database, { password });
    const cause = events[0]?.["cause"];
    assertMatch(String(cause), RegExp(`the option password failed: ${reason}`));
    await until("the end of the connection", () => relay.connections === 0);
    isAway = false;
    await until("the registration", () => usage.fault === undefined);
    await usage.close();
  }
  const own = new PostgresDatabase(postgresAt(database)); // the media server's
  const fault = await assertRejects(() => own.createTables(LEDGER), StorageError);
  await own.close();
  assertMatch(String(fault.cause), /it asks for a password: write one in DATABASE_URL$/);
});
