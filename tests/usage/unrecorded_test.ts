/** An application whose record takes no call, and what its verdicts say. */

import { definePolicy } from "@media-head/lifecycle";
import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { postgresAt } from "../../lib/database/place.ts";
import { PostgresDatabase } from "../../lib/database/postgres/database.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { type LogEvent, openUsage, type UsageOptions } from "../../lib/usage/mod.ts";
import { askGate } from "../support/gate.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing, shared } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { PASSWORD, POSTGRES, PostgresServer, USER } from "../support/postgres.ts";
import { Relay } from "../support/relay.ts";
import { reasonsIn } from "../support/usage_report.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

const POLICY = definePolicy({
  deprecatedAt: "2026-11-21",
  sunsetAt: "2027-06-30",
  afterSunset: "gone",
});
const ROUTES = { "/v1": POLICY, "/v2": POLICY };

const REFUSED = /cannot be reached \(.*(?:ECONNREFUSED|refused)/i;

/** Opens a record, with what the application logs. */
async function open(database: string, options: Partial<UsageOptions> = {}) {
  const events: LogEvent[] = [];
  const log = (event: LogEvent) => void events.push(event);
  const usage = await openUsage(database, { routes: ROUTES, log, ...options });
  for (const route of Object.keys(ROUTES)) usage.retire(route);
  const call = async (route: string, init: RequestInit = {}, at?: number) => {
    const clock = at === undefined ? {} : { clock: () => at };
    const handler = usage.withLifecycle(() => new Response("old"), route, clock);
    const response = await handler(new Request(`http://test${route}`, init));
    return { response, status: response.status, text: await response.text() };
  };
  const errors = () => events.filter(({ event }) => event === "error");
  return { usage, events, errors, call };
}

/** The record began before the period of the gate. */
const AGED = "UPDATE media_head_session SET began = 0; UPDATE media_head_ledger SET started = 0";

needing(...POSTGRES)(
  "an application that need not be registered refuses calls until it is",
  async () => {
    await using server = await PostgresServer.start();
    const database = server.urlOf(await server.createDatabase());
    await server.stop();
    const error = await assertRejects(() => openUsage(database, { routes: ROUTES }), Error);
    assertMatch(error.message, REFUSED);

    const { usage, events, call } = await open(database, { required: false });
    const { session } = usage;
    assertEquals(
      usage.fault,
      "no record of calls: the process is not registered yet (see the log)",
    );
    assertEquals(events.map(({ event }) => event), ["error"]);
    const warned = await open(`${database}?pool=5`, { required: false });
    await warned.usage.close(); // after several attempts
    const warnings = warned.events.filter(({ event }) => event === "warning");
    assertEquals(warnings.map(({ message }) => message), [
      'openUsage(): nothing reads "pool" in the URL',
    ]);
    assertEquals((await call("/v1")).status, 503);
    await server.launch();
    await until("the registration", () => usage.fault === undefined);
    assertEquals(usage.session, session);
    assertEquals([events.at(-1)?.event, events.at(-1)?.["session"]], ["session", session]);
    await until("the record", async () => (await call("/v2")).status === 200);
    await usage.close();
    const [status, text] = await askGate(database, "--route", "/v1");
    assertEquals(status, 1, text);
    assertMatch(text, /^Still called: 1 call to \/v1 by 1 client /m);
  },
);

for (const unrecorded of ["refuse", "serve"] as const) {
  needing("files")(
    `an application that ends unregistered says so, and what was lost, with "${unrecorded}"`,
    () =>
      inFolder(async (folder) => {
        const database = `sqlite:${folder}/none/calls.sqlite`;
        const { usage, events, call } = await open(database, { required: false, unrecorded });
        assertEquals((await call("/v1")).status, unrecorded === "serve" ? 200 : 503);
        await usage.close();
        const messages = events.flatMap(({ message }) => message === undefined ? [] : [message]);
        assertEquals(messages, [
          "the process ends unregistered: no verdict knows that it served",
          "1 call could not be recorded",
        ]);
      }),
  );
}

/** A record on one of the engines, and what keeps it from being written, until it is called again. */
type Scene = (database: string, cut: () => Promise<() => Promise<unknown>>) => Promise<void>;

/** Registers a test on both engines. */
function onBoth(what: string, scene: Scene): void {
  needing("files")(`on SQLite ${what}`, () =>
    inFolder(async (folder) => {
      const path = `${folder}/calls.sqlite`;
      await scene(`sqlite:${path}`, () => {
        const file = new DatabaseSync(path);
        file.exec("BEGIN IMMEDIATE");
        return Promise.resolve(() => Promise.resolve(file.close()));
      });
    }));
  needing(...POSTGRES)(`on PostgreSQL ${what}`, async () => {
    await using relay = new Relay(postgres().port);
    const database = postgres().urlOf(await postgres().createDatabase(), relay.port);
    await scene(database, () => {
      relay.lose();
      return Promise.resolve(() => Promise.resolve(relay.restore()));
    });
  });
}

/** Calls while the record is away, and whether they are answered as always, and at once. */
const AWAY: [what: string, init: RequestInit, at: number | undefined, status: number][] = [
  ["a refusal with 410", {}, POLICY.sunsetAt, 410],
  ["an OPTIONS", { method: "OPTIONS" }, undefined, 200],
  ["a probe", { headers: { "Lifecycle-Probe": "0123456789abcdef" } }, undefined, 200],
  ["lifecycle check", { headers: { "User-Agent": "media-head-check" } }, undefined, 200],
];

onBoth("no call is served that the record does not take, and all are counted later", async (
  database,
  cut,
) => {
  const { usage, call, errors } = await open(database);
  const restore = await cut();
  const [get, head] = await Promise.all([call("/v1"), call("/v1", { method: "HEAD" })]);
  assertEquals(get.status, 503);
  assertMatch(get.response.headers.get("retry-after") ?? "", /^\d+$/);
  assertEquals([head.status, head.text], [503, ""]);
  assertEquals([...head.response.headers], [...get.response.headers]);
  for (const [what, init, at, status] of AWAY) {
    assertEquals((await call("/v1", init, at)).status, status, what);
  }
  await restore();
  await until("the record", async () => (await call("/v2")).status === 200);
  assertEquals((await call("/v2")).status, 200);
  await until("the flush", () => usage.fault === undefined);
  await usage.close();
  assertEquals(errors().filter(({ message }) => message !== undefined), [], "nothing is lost");
  const [status, text] = await askGate(database, "--route", "/v1");
  assertEquals(status, 1, text);
  assertMatch(text, /^Still called: 3 calls to \/v1 by 1 client /m);
});

onBoth('with "serve", a call is served that the record does not take, once the log says so', async (
  database,
  cut,
) => {
  const { usage, call, errors } = await open(database, { unrecorded: "serve" });
  const restore = await cut();
  const unrecorded = () => errors().filter(({ route }) => route === "/v1");
  const handler = usage.withLifecycle(() => new Response(`${unrecorded().length}`), "/v1");
  for (let count = 0; count < 3; count++) {
    const response = await handler(new Request("http://test/v1"));
    assertEquals([response.status, await response.text()], [200, "1"], "logged before, and once");
  }
  assertMatch(
    String(unrecorded()[0]?.["cause"]),
    /^The record of calls does not take this call, which is served all the same/,
  );
  await restore();
  await until("the record", async () => (await call("/v2")).status === 200);
  await until("the flush", () => usage.fault === undefined);
  await usage.close();
  const [status, text] = await askGate(database, "--route", "/v1");
  assertEquals(status, 1, text);
  assertMatch(text, /^Still called: 3 calls to \/v1 by 1 client /m);
});

/** How a session ended long ago, and the verdicts without and with `--trust-stops`. */
const ENDINGS: [unrecorded: "refuse" | "serve", ended: string, verdicts: [number, number]][] = [
  ["refuse", "'stopped'", [0, 0]],
  ["refuse", "NULL", [0, 0]],
  ["serve", "'stopped'", [0, 0]],
  ["serve", "NULL", [3, 0]],
];

for (const [unrecorded, ended, verdicts] of ENDINGS) {
  needing("files")(
    `a process that may serve unrecorded calls is a doubt if it was killed: ${unrecorded}, ${ended}`,
    () =>
      inFolder(async (folder) => {
        const path = `${folder}/calls.sqlite`;
        const database = `sqlite:${path}`;
        const first = await open(database, { unrecorded });
        await first.usage.close();
        const { usage } = await open(database); // which counts now
        {
          using file = new DatabaseSync(path);
          file.exec(`${AGED}; UPDATE media_head_session SET ended = ${ended}, pid = pid + 1,
            reported = reported - 3600000 WHERE id = '${first.usage.session}'`);
        }
        const strict = await askGate(database);
        const trusting = await askGate(database, "--trust-stops");
        assertEquals([strict[0], trusting[0]], verdicts, strict[1]);
        const [, json] = await askGate(database, "--json");
        assertEquals(reasonsIn(json), verdicts[0] === 3 ? ["unrecorded"] : [], strict[1]);
        await usage.close();
      }),
  );
}

needing(...POSTGRES)("a rejection names its cause, and no password", async () => {
  const name = await postgres().createDatabase();
  const url = postgres().urlOf(name);
  const nowhere = freePort();
  const rows: [database: string, message: RegExp][] = [
    [url.replace(PASSWORD, "wrong-secret"), /\(password authentication failed for user "media"\)$/],
    [url.replace(name, "none"), /\(database "none" does not exist\)$/],
    [postgres().urlOf(name, nowhere), REFUSED],
    [url.replace(PASSWORD, "se#cret"), /: .*"%23"$/],
    [url.replace(PASSWORD, "1#cret"), /: .*"%23"$/],
  ];
  for (const [database, message] of rows) {
    const error = await assertRejects(() => openUsage(database, { routes: ROUTES }), Error);
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
      assertEquals(status, 1);
      assertMatch(text, /^Still called: 2 calls to \/v1 and \/v2 by 1 client /m);
    } finally {
      Deno.env.delete("PGPASSWORD");
    }
    const wrong = { routes: ROUTES, password: () => Promise.reject(new Error("no token")) };
    const error = await assertRejects(() => openUsage(database, wrong), Error);
    assertMatch(error.message, /\(the option password failed: Error: no token\)$/);
  },
);

needing(...POSTGRES)(
  "a connection without a password says what to set, and ends at once",
  async () => {
    // By default, PostgreSQL itself would end it after a minute.
    await using server = await PostgresServer.start({
      settings: { authentication_timeout: "600" },
    });
    await using relay = new Relay(server.port);
    const database = server.urlOf(await server.createDatabase(), relay.port)
      .replace(`:${PASSWORD}`, "");
    const rows: [password: UsageOptions["password"], message: RegExp][] = [
      [undefined, /\(it asks for a password: set PGPASSWORD\)$/],
      [() => "", /\(password: expected a function that returns the password, got an empty one\)$/],
      [() => undefined as unknown as string, / returns the password, got undefined\)$/],
      [() => 7 as unknown as string, / returns the password, got number\)$/],
      [() => Promise.reject("no token"), /\(the option password failed: no token\)$/],
      [() => Promise.reject(), /\(the option password failed: undefined\)$/],
    ];
    for (const [password, message] of rows) {
      const options = { routes: ROUTES, password };
      const error = await assertRejects(() => openUsage(database, options), Error);
      assertMatch(error.message, message);
      await until("the end of the connection", () => relay.connections === 0);
    }
    const own = new PostgresDatabase(postgresAt(database)); // the media server's
    const fault = await assertRejects(() => own.createTables([]), StorageError);
    await own.close();
    assertMatch(String(fault.cause), /it asks for a password: write one in DATABASE_URL$/);
  },
);
