/** An application that starts without its record, and what its verdicts say. */

import { definePolicy } from "@media-head/lifecycle";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
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
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

const POLICY = definePolicy({ deprecatedAt: "2026-11-21", sunsetAt: "2027-06-30" });
const ROUTES = { "/v1": POLICY, "/v2": POLICY };

const SENTENCE = "rests on no process having ended unregistered, and none running " +
  "unregistered: the application may start without its record (required: false).";

const REFUSED = /cannot be reached \(.*(?:ECONNREFUSED|refused)/i;

/** Opens a record, with what the application logs. */
async function open(database: string, options: Partial<UsageOptions> = {}) {
  const events: LogEvent[] = [];
  const log = (event: LogEvent) => void events.push(event);
  const usage = await openUsage(database, { routes: ROUTES, log, ...options });
  const call = async (route: string) => {
    const handler = usage.withLifecycle(() => new Response("old"), route);
    await (await handler(new Request(`http://test${route}`))).text();
  };
  return { usage, events, call };
}

/** The record began before the period of the gate. */
const AGED = "UPDATE media_head_session SET began = 0; UPDATE media_head_ledger SET started = 0";

needing(...POSTGRES)(
  "an application that need not be recorded starts without its database, and registers later",
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
    await call("/v1");
    await server.launch();
    await until("the registration", () => usage.fault === undefined);
    assertEquals(usage.session, session);
    assertEquals([events.at(-1)?.event, events.at(-1)?.["session"]], ["session", session]);
    await usage.close();
    const [status, text] = await askGate(database);
    assertEquals(status, 1, text);
    assertMatch(text, /^Still called: 1 call to \/v1 by 1 client /m);
    assertStringIncludes(text, `The verdict ${SENTENCE}`);
  },
);

needing("files")(
  "an application that ends unregistered says so, and what was lost",
  () =>
    inFolder(async (folder) => {
      const database = `sqlite:${folder}/none/calls.sqlite`;
      const { usage, events, call } = await open(database, { required: false });
      await call("/v1");
      await usage.close();
      const messages = events.flatMap(({ message }) => message === undefined ? [] : [message]);
      assertEquals(messages, [
        "the process ends unregistered: no verdict knows that it served",
        "1 call could not be recorded",
      ]);
    }),
);

needing("files")(
  "every verdict on routes that may be served unregistered says so",
  () =>
    inFolder(async (folder) => {
      const path = `${folder}/calls.sqlite`;
      const database = `sqlite:${path}`;
      const age = (sql = "") => {
        using file = new DatabaseSync(path);
        file.exec(AGED + sql);
      };
      const named = async (...words: string[]) =>
        JSON.parse((await askGate(database, "--json", ...words))[1]).servedUnregistered;
      const sure = await open(database);
      await sure.usage.close();
      assertEquals(await named(), []);
      assertEquals((await askGate(database))[1].includes("register"), false);

      const routes = { "/v1": POLICY };
      await (await open(database, { routes, required: false })).usage.close();
      const unknown = await askGate(database);
      assertEquals(unknown[0], 3);
      age();
      const clear = await askGate(database);
      assertEquals(clear[0], 0, clear[1]);
      const late = await open(database, { routes, required: false });
      await late.call("/v1");
      await late.usage.close();
      const called = await askGate(database);
      assertEquals(called[0], 1, called[1]);
      for (const [, text] of [unknown, clear, called]) {
        assertStringIncludes(text, `The verdict ${SENTENCE}`);
      }
      assertEquals(await named(), ["/v1"]);
      const both = await askGate(database, "--route", "/v1", "--route", "/v2");
      assertStringIncludes(both[1], `The verdict on /v1 ${SENTENCE}`);
      assertEquals((await askGate(database, "--route", "/v2"))[1].includes("register"), false);
      assertEquals(await named("--route", "/v2"), []);

      // Processes of a time before the period say nothing of it.
      age("; UPDATE media_head_session SET reported = 1 WHERE may_start_unregistered = 1");
      assertEquals(await named("--route", "/v1"), []);
    }),
);

needing(...POSTGRES)("a rejection names its cause, and no password", async () => {
  const name = await postgres().createDatabase();
  const url = postgres().urlOf(name);
  const nowhere = freePort();
  const rows: [database: string, message: RegExp][] = [
    [url.replace(PASSWORD, "wrong-secret"), /\(password authentication failed for user "media"\)$/],
    [url.replace(name, "none"), /\(database "none" does not exist\)$/],
    [postgres().urlOf(name, nowhere), REFUSED],
    [url.replace(PASSWORD, "se#cret"), /: the URL has an unescaped "#"; write it as "%23"$/],
    [url.replace(PASSWORD, "1#cret"), /: the URL has an unescaped "#"; write it as "%23"$/],
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
    assertMatch(error.message, /cannot be reached \(no token\)$/);
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
