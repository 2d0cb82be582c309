/** The record that an application keeps. Its package is tested in `tests/with_packages/usage_package.ts`. */

import { definePolicy } from "@media-head/lifecycle";
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { assertSpyCalls, stub } from "@std/testing/mock";
import { DatabaseSync } from "node:sqlite";
import { sqliteAt } from "../../lib/database/place.ts";
import { nodeRuntime } from "../../lib/database/sqlite/node_runtime.ts";
import { CONTACT } from "../../lib/input/contact.ts";
import { CHECK_CLIENT } from "../../lib/lifecycle/breaking.ts";
import { check } from "../../lib/lifecycle/checking/check.ts";
import { PhaseLog } from "../../lib/log/phases.ts";
import { runLifecycle } from "../../lib/usage/lifecycle.ts";
import { type LogEvent, openUsage, type Usage, type UsageOptions } from "../../lib/usage/mod.ts";
import { openLedger } from "../../lib/usage/record/open_ledger.ts";
import { fakeTimers } from "../support/fake_timers.ts";
import { askGate, askVerdict } from "../support/gate.ts";
import { lifecycle } from "../support/lifecycle_cli.ts";
import { testsInFolder } from "../support/media_cli.ts";
import { exchange, listening } from "../support/node_server.ts";
import { Origin } from "../support/origin.ts";
import { captureOutput } from "../support/output.ts";
import { requestRaw } from "../support/raw_http.ts";
import { until } from "../support/within.ts";

const test = testsInFolder("files");
const testOnNetwork = testsInFolder("files", "network");

const POLICY = definePolicy({
  deprecatedAt: "2026-11-21",
  sunsetAt: "2027-06-30",
  brownouts: ["2027-05-03T09:00Z/PT1H", "2027-06-03T09:00Z/PT1H"],
  brownoutStatus: 503,
});

/** Opens a record in a new file, and returns what reads all its rows. */
async function opened(folder: string, options: Partial<UsageOptions> = {}) {
  const path = `${folder}/calls.sqlite`;
  const events: LogEvent[] = [];
  const log = (event: LogEvent) => void events.push(event);
  const usage = await openUsage(`sqlite:${path}`, { routes: { "/v1": POLICY }, log, ...options });
  const rows = async () => {
    const { ledger, close } = await openLedger(sqliteAt(path), { runtime: nodeRuntime });
    return await Array.fromAsync(ledger.usage("")).finally(close);
  };
  return { usage, events, rows };
}

const old = () => new Response("old");

/** Makes a call, and returns the status. */
async function call(
  handler: (request: Request) => Promise<Response>,
  headers: Record<string, string> = {},
): Promise<number> {
  const response = await handler(new Request("http://test/v1", { headers }));
  await response.body?.cancel();
  return response.status;
}

test("openUsage() records a call under the brownout that refused it, by the route's clock", async (folder) => {
  const { usage, rows } = await opened(folder);
  const end = POLICY.brownouts[0]?.end ?? 0;
  for (const now of [end - 1, end]) {
    await call(usage.withLifecycle(old, "/v1", { clock: () => now }));
  }
  await usage.close();
  const seen = (await rows()).map(({ phase, brownout, status }) => [phase, brownout, status]);
  assertEquals(seen.toSorted(), [
    ["brownout", "2027-05-03T09:00:00Z", "5xx"],
    ["deprecated", "", "2xx"],
  ]);
});

test("openUsage() records a call under the brownout in which it began, whenever it ends", async (folder) => {
  const { usage, rows } = await opened(folder);
  const [first, second] = POLICY.brownouts;
  let now = first?.start ?? 0;
  const handler = usage.withLifecycle(
    () => {
      now = second?.start ?? 0;
      return old();
    },
    "/v1",
    { clock: () => now, applies: () => false },
  );
  await call(handler);
  await usage.close();
  const seen = (await rows()).map(({ phase, brownout }) => [phase, brownout]);
  assertEquals(seen, [["brownout", "2027-05-03T09:00:00Z"]]);
});

test("openUsage() logs changes of phase, and those until the end", async (folder) => {
  let ahead = 0;
  const { now: realNow } = Date;
  using _now = stub(Date, "now", () => realNow() + ahead);
  using start = stub(PhaseLog.prototype, "start", () => {});
  const policy = definePolicy({ deprecatedAt: new Date(realNow() + 86_400_000) });
  const { usage, events } = await opened(folder, { routes: { "/v1": policy } });
  assertSpyCalls(start, 1);
  ahead = 2 * 86_400_000;
  await usage.close();
  const changes = events.filter(({ event }) => event === "phase");
  assertEquals(changes, [{ event: "phase", route: "/v1", phase: "deprecated" }]);
});

test("openUsage() learns of a hold at its start, and with each heartbeat", async (folder) => {
  const database = `sqlite:${folder}/calls.sqlite`;
  const policy = definePolicy({
    deprecatedAt: "1999-01-01",
    sunsetAt: "2999-01-01",
    brownouts: ["2000-01-01/2998-01-01"],
    brownoutStatus: 503,
  });
  const options = { routes: { "/v1": policy } };
  using timers = fakeTimers();
  /** Opens the record, in real time, since it is a file. */
  const open = async () => {
    const all = await timers.during(opened(folder, options));
    while (all.usage.fault !== undefined) await timers.pass(1_000);
    return all;
  };
  /** Sends two calls through each kind of middleware. Returns their statuses. */
  const statusesOf = async (usage: Usage) => {
    const handler = usage.withLifecycle(old, "/v1");
    const retired = usage.retire("/v1");
    await using server = await listening((request, response) =>
      retired(request, response, () => response.end("old"))
    );
    const statuses: number[] = [];
    for (let count = 0; count < 2; count++) {
      statuses.push(await call(handler), (await requestRaw(server.port, "HEAD", "/v1")).status);
    }
    return statuses;
  };
  const hold = async (...words: string[]) => {
    const { code, stdout } = await timers.during(
      lifecycle("hold", "--database", database, ...words),
    );
    assertEquals(code, 0);
    return stdout;
  };
  const end = Math.ceil(Date.now() / 1_000) * 1_000 + 86_400_000;
  const endText = new Date(end).toISOString();

  const running = await open();
  assertEquals(await statusesOf(running.usage), [503, 503, 503, 503]);
  await timers.pass(1_000);
  assertEquals((await running.rows()).length, 2);
  const put = await hold("--until", endText, "--because", "billing is down", "--route", "/v1");
  assertStringIncludes(put, "/v1: the brownout from ");
  assertStringIncludes(put, "1 process has followed");
  assertEquals(await statusesOf(running.usage), [200, 200, 200, 200]);
  await timers.during(running.usage.close());
  const started = await open();
  assertEquals(await statusesOf(started.usage), [200, 200, 200, 200]);
  const later = started.usage.withLifecycle(old, "/v1", { clock: () => end });
  assertEquals(await call(later), 503, "what is left");
  await timers.pass(5_000); // when the log has looked at the phases again
  const [line, ...others] = started.events.filter(({ event }) => event === "hold");
  assertEquals([line?.["hold"], line?.["because"], others], ["begins", "billing is down", []]);
  assertMatch(await hold("--release"), /^Released: \/v1 from /);
  assertMatch(await hold(), /^\/v1 from \S+ to \S+ \(billing is down\), released at /);
  await timers.during(started.usage.close());
  const rows = (await started.rows()).map(({ brownout, calls }) => `${brownout || "-"} ${calls}`);
  const left = endText.replace(".000", "");
  const before = "2000-01-01T00:00:00Z 2";
  assertEquals(rows.toSorted(), ["- 4", "- 4", before, before, `${left} 1`]);
});

test("openUsage() counts a call even if the route's clock fails", async (folder) => {
  const start = Date.parse("2020-02-01");
  const policy = {
    ...POLICY,
    brownouts: [{ start, end: Date.now() + 86_400_000, status: 503 as const }],
  };
  const { usage, rows } = await opened(folder, { routes: { "/v1": policy } });
  using _error = stub(console, "error");
  let reads = 0;
  const clock = () => {
    if (++reads > 1) throw new Error("broken"); // the first is when the option is checked
    return Date.now();
  };
  const handler = usage.withLifecycle(old, "/v1", { clock });
  await call(handler);
  await usage.close();
  const seen = (await rows()).map(({ phase, brownout, calls }) => [phase, brownout, calls]);
  assertEquals(seen, [["brownout", "2020-02-01T00:00:00Z", 1]]);
});

test("openUsage() names its session and process in the log, as they are on record", async (folder) => {
  const path = `${folder}/calls.sqlite`;
  const { usage, events } = await opened(folder);
  const { session } = usage;
  const process = { machine: Deno.hostname(), pid: Deno.pid };
  const [{ started, ...event } = {}, ...others] = events as Record<string, unknown>[];
  assertEquals([event, others], [{ event: "session", session, ...process }, []]);
  const age = Date.now() - Date.parse(String(started));
  assert(0 <= age && age < performance.now() + 60_000, `${started} is no start of this process`);
  const { ledger, close } = await openLedger(sqliteAt(path), { runtime: nodeRuntime });
  const [registered] = await ledger.sessions();
  await close();
  assertEquals(registered?.id, session);
  assertEquals(registered?.process, { ...process, started: Date.parse(String(started)) });
  await usage.close();
});

test("openUsage() counts whatever a request has, and calls the route's own onCount", async (folder) => {
  const { usage, rows, events } = await opened(folder);
  const clients: string[] = [];
  const retired = usage.retire("/v1", {
    client: ({ headers }) => headers["x-client"] as string | undefined,
    onCount: ({ client }) => void clients.push(client),
  });
  const odd = ["\xff\xfe\x85", "Zo\xeb \u20ac", undefined, "\0"]; // by authentication, or no parser
  for (const headers of [{}, ...odd.map((value) => ({ "x-client": value }))]) {
    const [request, response] = exchange(headers);
    retired(request, response, () => Reflect.apply(response.writeHead, response, [200]));
  }
  await usage.close();
  assertEquals((await rows()).reduce((sum, { calls }) => sum + calls, 0), 5);
  assertEquals(clients, Array(5).fill("(no User-Agent)"));
  assertEquals(events.map(({ event }) => event), ["session"]);
});

/** What the application knows of a client, and the client on record. */
const IDENTIFIED: [id: unknown, client: string, release: string][] = [
  ["Team 7", "id Team 7", "okhttp"],
  [42, "id 42", "okhttp"],
  [NaN, "(other)", ""],
  [undefined, "app okhttp", "4.9"],
  [null, "app okhttp", "4.9"],
  ["", "(other)", ""],
  [" a", "(other)", ""],
  ["a".repeat(65), "(other)", ""],
  ["Zoë", "(other)", ""],
  [{}, "(other)", ""],
  [Promise.resolve("Team 7"), "(other)", ""],
  [new Error("no user"), "(other)", ""],
];

testOnNetwork(
  "the option client names the client that the application knows when the head is sent",
  async (folder) => {
    for (const [index, [id, client, release]] of IDENTIFIED.entries()) {
      const place = `${folder}/${index}`;
      await Deno.mkdir(place);
      const { usage, rows, events } = await opened(place);
      const users = new WeakMap<object, unknown>(); // what authentication sets later
      const nameOf = (request: object) => {
        const user = users.get(request);
        if (user instanceof Error) throw user;
        return user as string;
      };
      const headers = { "User-Agent": "okhttp/4.9" };
      const handler = usage.withLifecycle(
        async (request: Request, _: string) => {
          await Promise.resolve();
          users.set(request, id);
          return old();
        },
        "/v1",
        { client: (request, word) => word === "word" ? nameOf(request) : "no word" },
      );
      await (await handler(new Request("http://test/v1", { headers }), "word")).text();
      const retired = usage.retire("/v1", {
        client: (request, { statusCode }) => statusCode === 200 ? nameOf(request) : "no response",
      });
      await using server = await listening((request, response) =>
        retired(request, response, async () => {
          await Promise.resolve();
          users.set(request, id);
          response.end();
        })
      );
      await requestRaw(server.port, "GET", "/v1", headers);
      await usage.close();
      const seen = (await rows()).map(({ client, release, calls }) => [client, release, calls]);
      assertEquals(seen, [[client, release, 2]], String(id));
      const isWrong = typeof id === "object" && id !== null || Number.isNaN(id);
      assertEquals(events.filter(({ event }) => event === "error").length, isWrong ? 1 : 0);
    }
  },
);

test("the owner's page names the application's server and contact", async (folder) => {
  const policy = definePolicy({ deprecatedAt: "2026-11-21", documentation: "/deprecation" });
  const places: [given: Partial<UsageOptions>, parts: string[]][] = [
    [{}, ["<h1>okhttp still calls paths that will be removed</h1>"]],
    [{ publicUrl: "https://api.example.com", contact: "mailto:api@example.com" }, [
      "<h1>okhttp still calls paths of api.example.com that will be removed</h1>",
      'href="https://api.example.com/deprecation"',
      'href="mailto:api@example.com"',
    ]],
  ];
  for (const [given, parts] of places) {
    const { usage } = await opened(folder, { routes: { "/v1": policy }, ...given });
    await call(usage.withLifecycle(old, "/v1"), { "User-Agent": "okhttp/4.9" });
    await usage.close();
    const file = `${folder}/page.html`;
    const database = `sqlite:${folder}/calls.sqlite`;
    const words = ["--database", database, "--client", "app okhttp", "--html", file];
    assertEquals((await lifecycle("usage", ...words)).code, 0);
    const page = await Deno.readTextFile(file);
    for (const part of parts) assertStringIncludes(page, part);
    assertEquals(/mailto|https:/.test(page), parts.length > 1);
  }
});

testOnNetwork("lifecycle check sends requests that are no calls", async (folder) => {
  const { usage, rows } = await opened(folder);
  await using origin = new Origin(usage.withLifecycle(old, "/v1"));
  const { exitStatus, lines } = await check([origin.url("/v1")]);
  assertEquals(exitStatus, 0, lines.join("\n"));
  await usage.close();
  const seen = (await rows()).map(({ method, client, impact }) => [method, client, impact]);
  const client = `probe ${CHECK_CLIENT}`;
  assertEquals(seen, [["GET", client, "none"], ["HEAD", client, "none"]]);
});

test("close() ends the session once, and later calls are on record in others", async (folder) => {
  const { usage, rows, events } = await opened(folder);
  const handler = usage.withLifecycle(old, "/v1");
  const counted = async () => (await rows()).reduce((sum, { calls }) => sum + calls, 0);
  assertEquals([await call(handler), usage.fault], [200, undefined]);
  await Promise.all([usage.close(), usage.close()]);
  assertEquals(await counted(), 1);
  for (let count = 0; count < 3; count++) assertEquals(await call(handler), 200);
  await until("the later calls", async () => await counted() === 4);
  assertEquals(usage.fault, undefined);
  assertEquals([...new Set(events.map(({ event }) => event))], ["session"]);
  using file = new DatabaseSync(`${folder}/calls.sqlite`);
  const ends = file.prepare("SELECT DISTINCT ended FROM media_head_session").all();
  assertEquals(ends.map(({ ended }) => ended), ["stopped"]);
});

test("close() leaves the database alone, though a route was mounted just before", async (folder) => {
  const { usage, events } = await opened(folder);
  usage.retire("/v1");
  await usage.close();
  await Deno.rename(`${folder}/calls.sqlite`, `${folder}/moved`);
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, 100); // what opened the file anew would have made another by then
  await promise;
  assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name), ["moved"]);
  assertEquals(events.map(({ event }) => event), ["session"]);
});

test("close() waits until every call is answered", async (folder) => {
  const { usage, rows } = await opened(folder);
  using file = new DatabaseSync(`${folder}/calls.sqlite`);
  const session = () => file.prepare("SELECT sequence, ended FROM media_head_session").get() ?? {};
  const { promise, resolve } = Promise.withResolvers<Response>();
  const handler = usage.withLifecycle(() => promise, "/v1");
  const answer = handler(new Request("http://test/v1"));
  const { sequence } = session();
  const closing = usage.close();
  await until("a heartbeat", () => Number(session()["sequence"]) > Number(sequence));
  assertEquals(session()["ended"], null);
  resolve(old());
  await Promise.all([answer, closing]);
  assertEquals(session()["ended"], "stopped");
  assertEquals((await rows()).map(({ calls }) => calls), [1]);
});

test("openUsage() goes on if the log throws", async (folder) => {
  const said: unknown[] = [];
  using _error = stub(console, "error", (...words) => void said.push(...words));
  const log = () => {
    throw new Error("the log is full");
  };
  using _clock = stub(Date, "now", () => 0); // the last flush logs a clock that is wrong
  const { usage } = await opened(folder, { log });
  await usage.close();
  assert(String(said).includes("the log is full"));
});

test("a route that is not mounted within a minute is a fault, but not of a job", async (folder) => {
  const routes = { "/v1": POLICY, "/v1/:id": POLICY };
  const start = performance.now();
  let passed = 0;
  using _now = stub(performance, "now", () => start + passed);
  const { usage, events, rows } = await opened(folder, { routes });
  const job = await opened(folder, { routes }); // it only imports the module
  usage.retire("/v1");
  assertEquals(usage.fault, undefined);
  passed = 61_000;
  assertMatch(usage.fault ?? "", /^\/v1\/:id: not mounted, so calls are not counted$/);
  assertEquals(job.usage.fault, undefined);

  assertEquals(await call(usage.withLifecycle(old, "/v1/:id")), 200);
  assertEquals(usage.fault, undefined);
  await usage.close();
  await job.usage.close();
  const sessions = events.filter(({ event }) => event === "session");
  assertEquals(sessions.length, 2, "the second one counts both");
  assertEquals((await rows()).map(({ route, calls }) => [route, calls]), [["/v1/:id", 1]]);
});

/** Processes that leave a route out, or mount none, beside one that mounts both. */
const LEAVING_OUT: [what: string, mounts: string[], verdict: string, routes: number][] = [
  ["one of two", ["/v1"], "unknown", 1],
  ["both, as a job does", [], "clear", 2],
];

for (const [what, mounts, verdict, count] of LEAVING_OUT) {
  test(`a verdict names a process that leaves routes out: ${what}`, async (folder) => {
    const policy = definePolicy({ deprecatedAt: "2026-01-01" });
    const routes = { "/v1": policy, "/v2": policy };
    const [all, some] = [await opened(folder, { routes }), await opened(folder, { routes })];
    for (const route of Object.keys(routes)) all.usage.retire(route);
    for (const route of mounts) some.usage.retire(route);
    using file = new DatabaseSync(`${folder}/calls.sqlite`);
    const read = file.prepare(
      "SELECT count(*) AS n FROM media_head_session WHERE policies <> '{}'",
    );
    await until("the mounts", () => read.get()?.["n"] === (mounts.length > 0 ? 2 : 1));
    // The first one has run for three days, and the other for ten minutes.
    const started = `CASE WHEN id = '${some.usage.session}' THEN 600000 ELSE 259200000 END`;
    file.exec(`UPDATE media_head_session SET began = began - ${started}`);
    const { text, json } = await askVerdict(`sqlite:${folder}/calls.sqlite`);
    const verdicts = json.verdicts.map((each) => [each.route, each.verdict]);
    assertEquals(verdicts, [["/v1", "clear"], ["/v2", verdict]], text);
    const gaps = json.gaps.map(({ kind, routes }) => [kind, routes.length]);
    assertEquals(gaps, [["not counted", count]], text);
    for (const { usage } of [all, some]) await usage.close();
  });
}

test("openUsage() says that a route was deleted that is called, for thirty days", async (folder) => {
  const routes = { "/v1": POLICY, "/v2": POLICY };
  const before = await opened(folder, { routes });
  const headers = { "User-Agent": "curl/8" };
  const handler = before.usage.withLifecycle(old, "/v1");
  for (let calls = 0; calls < 66; calls++) await call(handler, headers);
  await before.usage.close();
  const dayAgo = (days: number) =>
    new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
  const message = new RegExp(`^/v1 .* 66 times .*${dayAgo(30)}, .* app curl$`);
  const rows: [routes: UsageOptions["routes"], days: number, isSaid: boolean][] = [
    [{ "/v2": POLICY }, 0, true],
    [{}, 30, true],
    [{ "/v1": POLICY }, 30, false],
    [{}, 31, false],
  ];
  for (const [routes, days, isSaid] of rows) {
    using file = new DatabaseSync(`${folder}/calls.sqlite`);
    const day = Math.floor(Date.now() / 86_400_000) - days;
    file.prepare("UPDATE media_head_day SET day = ?").run(day);
    const { usage, events } = await opened(folder, { routes });
    const [warning, ...others] = events.filter(({ event }) => event === "warning");
    assertEquals([message.test(String(warning?.["message"])), others], [isSaid, []]);
    assertEquals(usage.fault, warning?.["message"]);
    await usage.close();
  }
});

test("openUsage() retains calls for 400 days unless it is told otherwise", async (folder) => {
  for (const [options, days] of [[{}, 400], [{ retainDays: 30 }, 30]] as const) {
    const { usage } = await opened(folder, options);
    await usage.close();
    using file = new DatabaseSync(`${folder}/calls.sqlite`);
    const session = file.prepare("SELECT retain_days FROM media_head_session WHERE id = ?");
    assertEquals(session.get(usage.session)?.["retain_days"], days);
  }
});

test("the last row of a table can be removed", async (folder) => {
  const { usage } = await opened(folder, { routes: {} });
  assertEquals(usage.fault, undefined);
  const expected = 'route: expected none, as `routes` has none, got "/v1"';
  assertThrows(() => usage.retire("/v1"), TypeError, expected);
  await usage.close();
  const [status, text] = await askGate(`sqlite:${folder}/calls.sqlite`);
  assertEquals(status, 3);
  assertMatch(text, /^Unknown: /);
});

test("openUsage() rejects what it cannot count by, or record in", async (folder) => {
  const url = (name: string, scheme: string) =>
    `${name}: expected an ${scheme} URL without user and password, got`;
  const contacts = ["http://h/contact", "mailto:", "mailto:ops", "mailto:a@b.test,c@d.test"];
  const wrong: [options: object, message: string][] = [
    [{ retainDays: 0 }, "retainDays: expected whole days from 1, got 0"],
    [{ retainDays: "30" }, 'retainDays: expected whole days from 1, got "30"'],
    [{ retain: 30 }, "options: expected only routes, password, onDemand, publicUrl, "],
    [{ routes: undefined }, "routes: expected an object with a policy for each route, got undef"],
    [{ routes: { "/v1\n": POLICY } }, 'routes: "/v1\\n" has'],
    [{ routes: "/v1" }, 'routes: expected an object with a policy for each route, got "/v1"'],
    [{ routes: { "/v1": { deprecatedAt: "2026-11-21" } } }, "policy: expected the result of"],
    [{ clientField: "X-Client" }, 'retainDays, log, got "clientField"'],
    [{ password: "secret" }, "password: expected a function that returns the password"],
    [{ onDemand: "no" }, 'onDemand: expected true or false, got "no"'],
    [{ required: false }, "required: this option is gone: a database that is away keeps no "],
    [{ unrecorded: "serve" }, "unrecorded: this option is gone: calls are served and counted "],
    [{ publicUrl: "api.example.com" }, url("publicUrl", "https: or http:")],
    [
      { publicUrl: "https://me:secret@h" },
      `${url("publicUrl", "https: or http:")} "https://…@h"`,
    ],
    ...[...contacts, "ops@b.test", ""].map((contact): [object, string] => {
      return [{ contact }, `contact: expected ${CONTACT.expected}, got "${contact}"`];
    }),
    [
      { contact: "https://me:secret@h" },
      `contact: expected ${CONTACT.expected}, got "https://…@h"`,
    ],
  ];
  for (const [options, message] of wrong) {
    await assertRejects(() => opened(folder, options), TypeError, message);
  }
  const routes = { "/v1": POLICY };
  const secret = ["mysql://u:secret@h/d", "sqlite://u:secret@h/d"];
  for (const database of ["calls.sqlite", "sqlite:", ...secret]) {
    const error = await assertRejects(() => openUsage(database, { routes }), Error, "expected");
    assert(!String(error).includes("secret"));
  }
  const password = () => "secret";
  const onSqlite = () => openUsage(`sqlite:${folder}/calls.sqlite`, { routes, password });
  await assertRejects(onSqlite, Error, "password: only PostgreSQL has one");

  const { usage } = await opened(folder);
  const answers = "answers: expected a list of statuses that do not count by themselves " +
    "(400, 401, 403, 404, 405, 407, 410), got";
  const mounts: [options: object, message: string, route?: string][] = [
    [{}, 'route: expected "/v1", got "/v2"', "/v2"],
    [{ answers: [200] }, `${answers} 200`],
    [{ answers: [404, 429] }, `${answers} 429`],
    [{ answers: ["404"] }, `${answers} "404"`],
    [{ answers: 404 }, `${answers} 404`],
    [{ client: "X-Client" }, "client: expected a function"],
    [{ extensions: [] }, 'a route of its own, such as "/v1 for'],
    [{ clients: () => "acme" }, 'maxAge, client, answers, got "clients"'],
  ];
  for (const [options, message, route = "/v1"] of mounts) {
    assertThrows(() => usage.retire(route, options), TypeError, message);
  }
  await usage.close();
});

test("lifecycle usage writes a page, and probes a route only by a URL under it", async (folder) => {
  const routes = { "/v1": POLICY, "/v1/songs": POLICY, "/v1/songs/:id": POLICY };
  const { usage } = await opened(folder, { routes });
  for (const route of Object.keys(routes)) usage.retire(route);
  await usage.close();
  const record = ["--database", `sqlite:${folder}/calls.sqlite`];
  const away = "http://127.0.0.1:9";
  const unanswered = (route: string) =>
    RegExp(`^${route}: unknown, because .*; ${away} does not answer .* omit --probe$`, "m");
  const rows: [words: string[], status: number, message: RegExp][] = [
    [[...record, "--probe", "http://a/v1"], 2, /'--probe <url>' needs '--gate'/],
    [[...record, "--gate", "1", "--header", "a: b"], 2, /'--header <line>' needs '--probe'/],
    [["--database", `sqlite:${folder}/none`], 1, /\/none" .*cannot be opened/],
    [[...record, "--html", `${folder}/calls.sqlite`], 1, /is a file of a record/],
    [[...record, "--html", `${folder}/none/page.html`], 1, /cannot be written/],
    [[...record, "--client", "nobody", "--html", `${folder}/page.html`], 1, /on record/],
    [[...record, "--html", `${folder}/page.html`], 0, /^Wrote /],
    [[...record, "--html", "/dev/null"], 0, /^Wrote /],
    [[...record, "--html", "-"], 0, /^<!DOCTYPE html>[^]*<\/html>\n$/],
    [[...record, "--html", "-", "--json"], 2, /'--html -' cannot be used with option '--json'/],
    [[...record, "--gate", "1", "--probe", `${away}/v2`], 2, /an item under "\/v1"/],
    [
      [...record, "--gate", "1", "--probe", `${away}/v1/songs/7`, "--header", "a: b"],
      3,
      unanswered("/v1/songs/:id"),
    ],
    [[...record, "--gate", "1", "--probe", `${away}/v1/songs`], 3, unanswered("/v1/songs")],
  ];
  for (const [words, status, message] of rows) {
    const { code, stdout, stderr } = await lifecycle("usage", ...words);
    assertEquals(code, status, words.join(" "));
    assertMatch(stdout + stderr, message);
  }
  Deno.chmodSync(`${folder}/page.html`, 0o600);
  assertEquals((await lifecycle("usage", ...record, "--html", `${folder}/page.html`)).code, 0);
  assertEquals((Deno.statSync(`${folder}/page.html`).mode ?? 0) & 0o777, 0o600, "as it was");
  assert(Deno.statSync("/dev/null").isCharDevice);
  const names = Array.from(Deno.readDirSync(folder), ({ name }) => name);
  assertEquals(names.toSorted(), ["calls.sqlite", "page.html"]);
  assertThrows(() => Deno.statSync("-"), Deno.errors.NotFound);

  let said = "";
  using _stdout = captureOutput(() => {
    throw new Error("full");
  });
  using _error = stub(console, "error", (line) => void (said += line));
  assertEquals(await runLifecycle(["usage", "--help"]), 1);
  assertMatch(said, /lifecycle: .*\(full\)$/);
});
