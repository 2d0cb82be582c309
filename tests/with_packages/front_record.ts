/** The record that `lifecycle front` keeps, in both engines: who calls, holds, and how it ends. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { DAY_MS } from "../../lib/http/timestamp.ts";
import {
  deprecated,
  FrontProcess,
  installed,
  OK,
  requestOf as requestWith,
  runLifecycle,
  test as once,
  writeSettings,
} from "../support/front.ts";
import { NPM } from "../support/npm.ts";
import { isFile, LINUX, type Need, needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import {
  recordOnPostgres,
  recordOnSqlite,
  type RecordPlace,
} from "../support/recorded_processes.ts";
import { ask, HandBackend, Wire } from "../support/wire.ts";
import { until } from "../support/within.ts";

/** A release of Node that is too old. */
const OLD = "20";

const postgres = shared(POSTGRES, () => PostgresServer.start());

const ENGINES: readonly [name: string, needs: readonly Need[], () => Promise<RecordPlace>][] = [
  ["SQLite", [], async () => recordOnSqlite(await Deno.makeTempDir({ dir: installed().folder }))],
  ["PostgreSQL", POSTGRES, () => recordOnPostgres(postgres())],
];

/** Registers a test with each engine. */
function test(name: string, use: (place: RecordPlace) => Promise<void>) {
  for (const [engine, needs, open] of ENGINES) {
    needing(...NPM, ...needs, LINUX)(`${name} (${engine})`, async () => await use(await open()));
  }
}

const requestOf = (path: string, more = "") =>
  requestWith("GET", path, `User-Agent: curl/8\r\n${more}`);

/** A backend that knows one client by its session, and has no path below `/missing`. */
const startBackend = (onSlow: () => Promise<unknown> = () => Promise.resolve()) =>
  new HandBackend(async (wire) => {
    for (let head; (head = await wire.head()) !== undefined;) {
      if (head.includes("/slow")) await onSlow();
      const id = head.includes("session=acme") ? "\r\nX-Consumer-Id: acme\r\n" : "\r\n";
      const answer = OK.replace("\r\n", id);
      await wire.write(
        head.includes("/missing") ? answer.replace("200 OK", "404 Not Found") : answer,
      );
    }
  });

/** Asks the gate about 30 days. */
async function gate({ url }: { url: string }, ...words: string[]) {
  const asked = ["usage", "--database", url, "--gate", "30", "--json", ...words];
  const { code, text, errors } = await runLifecycle(asked);
  return { code, report: JSON.parse(text || "{}"), errors };
}

/** Moves the beginning of the record into the past, once so many processes have mounted routes. */
async function age({ execute }: RecordPlace, processes: number): Promise<void> {
  const mounted = "SELECT id FROM media_head_session WHERE CAST(policies AS text) <> '{}'";
  await until("the routes", async () => (await execute(mounted)).length === processes);
  await execute(`UPDATE media_head_session SET began = began - ${40 * DAY_MS}`);
  await execute(`UPDATE media_head_ledger SET started = started - ${40 * DAY_MS}`);
}

test("the gate says who calls through front, and a hold spares them", async (place) => {
  await using backend = startBackend();
  const client = { clientField: "X-Consumer-Id" };
  const away = { sunsetAt: "9000-01-02", brownouts: ["2020-01-01/9000-01-01"] };
  await using front = await FrontProcess.start({
    ...{ upstream: backend.url, database: place.url },
    routes: {
      "/v0": deprecated(client),
      "/v1": deprecated({ ...client, ...away }),
      "/lookup": deprecated({ answers: [404] }),
      "/quiet": deprecated(),
    },
  });
  assertEquals((await gate(place)).code, 3);
  await age(place, 1);
  assertEquals((await gate(place, "--route", "/quiet")).code, 0);

  const known = await ask(front.port, requestOf("/v0/a", "Cookie: session=acme\r\n"));
  assertMatch(known, /^HTTP\/1\.1 200 OK\r\n/);
  assert(!known.includes("X-Consumer-Id"), known);
  const elsewhere = await ask(front.port, requestOf("/v2", "Cookie: session=acme\r\n"));
  assertStringIncludes(elsewhere, "X-Consumer-Id: acme");
  await ask(front.port, requestOf("/v0/b", "X-Consumer-Id: beta\r\n"));
  await ask(front.port, requestOf("/v0/c"));
  await ask(front.port, requestOf("/v0/missing"));
  await ask(front.port, requestOf("/v0", "Host: a\r\n")); // 400, and not counted
  await ask(front.port, requestOf("/lookup/missing"));
  const refused = await ask(front.port, requestOf("/v1", "X-Consumer-Id: gamma\r\n"));
  assertMatch(refused, /^HTTP\/1\.1 503 /);
  await until("the calls", async () => (await gate(place)).report.clients.length === 4);
  const { code, report } = await gate(place);
  assertEquals(code, 1);
  const calls = report.verdicts.map((
    { route, verdict, calls }: Record<string, unknown>,
  ) => [route, verdict, calls]);
  assertEquals(calls.toSorted(), [
    ["/lookup", "called", 1],
    ["/quiet", "clear", 0],
    ["/v0", "called", 3],
    ["/v1", "called", 1],
  ]);
  const names = report.clients.map(({ client }: Record<string, string>) => client);
  assertEquals(names.toSorted(), ["app curl", "id acme", "id beta", "id gamma"]);

  const tomorrow = new Date(Date.now() + DAY_MS).toISOString();
  const words = ["--route", "/v1", "--until", tomorrow, "--because", "gamma needs it"];
  const held = await runLifecycle(["hold", "--database", place.url, ...words]);
  assertEquals([held.code, held.errors], [0, ""]);
  assertMatch(await ask(front.port, requestOf("/v1")), /^HTTP\/1\.1 200 OK\r\n/);
  const notice = await ask(front.port, requestOf("/deprecation", "Accept: application/json\r\n"));
  assertStringIncludes(notice, '"because": "gamma needs it"');
  await front.stop();
});

test("a stop answers what is in flight, and records it, though the signal comes twice", async (place) => {
  const answer = Promise.withResolvers<void>();
  let hasArrived = false;
  await using backend = startBackend(() => {
    hasArrived = true;
    return answer.promise;
  });
  const settings = { upstream: backend.url, database: place.url };
  await using front = await FrontProcess.start(settings);
  using idle = await Wire.to(front.port); // sends nothing
  using kept = await Wire.to(front.port);
  await kept.write(requestOf("/v1").replace("close", "keep-alive"));
  await kept.until("ok");
  using arriving = await Wire.to(front.port);
  const [first = "", ...rest] = requestOf("/v1").split("User-Agent");
  await arriving.write(first);
  using slow = await Wire.to(front.port);
  await slow.write(requestOf("/v1/slow").replace("close", "keep-alive"));
  await until("the request", () => hasArrived);
  front.signal("SIGTERM");
  front.signal("SIGTERM");
  front.signal("SIGINT");
  assertEquals([await idle.all(), await kept.all()], ["", ""]);
  await arriving.write(["", ...rest].join("User-Agent"));
  assertMatch(await arriving.all(), /^HTTP\/1\.1 200 OK\r\n[^]*ok$/);
  answer.resolve();
  assertMatch(await slow.all(), /^HTTP\/1\.1 200 OK\r\n[^]*ok$/);
  assertEquals(await front.end(), 0, front.log);
  assertEquals(front.events("stop").length, 1);
  const { report } = await gate(place);
  const [verdict] = report.verdicts;
  assertEquals([verdict.calls, report.gaps], [3, []]);
});

test("a process that is killed is named with the verdict", async (place) => {
  await using backend = startBackend();
  const settings = { upstream: backend.url, database: place.url };
  const front = await FrontProcess.start(settings);
  await using other = await FrontProcess.start(settings);
  for (const each of [front, other]) {
    await until("the registration", () => each.events("session").length > 0); // which may meet a lock
  }
  await age(place, 2);
  await front[Symbol.asyncDispose]();
  await place.execute(
    `UPDATE media_head_session SET reported = reported - 120000, written = written - 120000
      WHERE pid = ${front.pid}`,
  );
  const { report, code } = await gate(place);
  assertEquals(code, 0, JSON.stringify(report.verdicts));
  const gaps = report.gaps.map((
    { kind, process }: Record<string, { pid: number }>,
  ) => [kind, process?.pid]);
  assertEquals(gaps, [["silent", front.pid]]);
  await other.stop();
});

needing(...NPM, ...POSTGRES, LINUX)(
  "front starts without its record, and nothing waits for one that is frozen",
  async () => {
    await using backend = startBackend();
    await using server = await PostgresServer.start();
    const url = server.urlOf(await server.createDatabase());
    const settings = { upstream: backend.url, database: url };
    const called = async () => {
      const start = performance.now();
      assertMatch(await ask(early.port, requestOf("/v1")), /^HTTP\/1\.1 200 OK\r\n/);
      return performance.now() - start;
    };
    /** Calls three times: whoever waited for the record would wait each time. */
    const callThrice = async () => {
      const times = [await called(), await called(), await called()];
      assert(Math.min(...times) < 1_000, `${times} ms`);
    };
    await server.stop();
    await using early = await FrontProcess.start(settings);
    assertEquals(early.events("session"), []);
    await called();
    await server.launch();
    await until("the call", async () => (await gate({ url })).code === 1);

    server.freeze();
    await callThrice();
    await new Promise((resolve) => setTimeout(resolve, 1_500)); // a heartbeat begins, and hangs
    await callThrice();
    const start = performance.now();
    early.signal("SIGTERM");
    assertEquals(await early.end(), 0, early.log);
    assert(performance.now() - start < 15_000);
    assertMatch(early.log, /6 calls could not be recorded yet/);
    server.thaw();
  },
);

once("a start that cannot be says why in a sentence", async () => {
  const common = { upstream: "http://127.0.0.1:9", listen: "127.0.0.1:8001" };
  const routes = { "/v1": deprecated() };
  const rows: [settings: object, code: number, message: RegExp][] = [
    [{ routes }, 2, /^lifecycle: \S+\.json:\n +database: expected a URL like /],
    [
      { routes, database: "sqlite:/nowhere/a" },
      1,
      /^lifecycle: sqlite: .*\(database\).*"\/nowhere"/m,
    ],
    [
      { database: "sqlite:a", routes: { "/v1": { deprecatedAt: "soon" } } },
      2,
      / routes\.\/v1\.depre/,
    ],
    [{ database: "sqlite:a.json", routes }, 1, /^lifecycle: sqlite: .* cannot be opened/m],
  ];
  await Deno.writeTextFile(
    `${installed().folder}/a.json`,
    "not a database, but a longer text than its head",
  );
  for (const [settings, code, message] of rows) {
    const file = await writeSettings({ ...common, ...settings });
    const started = await runLifecycle(["front", file]);
    assertEquals(started.code, code, started.errors);
    assertMatch(started.errors, message);
    assert(!/^ +at /m.test(started.errors), started.errors);
    const checked = await runLifecycle(["front", file, "--check"]);
    assertEquals(checked.code, code, checked.errors);
  }
  const unread = await runLifecycle(["front", "none.json"]);
  assertEquals(unread.code, 1);
  assertMatch(unread.errors, /^lifecycle: "none\.json" cannot be read \(ENOENT/);
});

once("--check says what a start would do, and changes nothing", async () => {
  await using backend = startBackend();
  const database = `${installed().folder}/checked.sqlite`;
  const settings = {
    ...{ upstream: backend.url, listen: "127.0.0.1:8001", database: `sqlite:${database}` },
    routes: {
      "/v1": deprecated({ sunsetAt: "2030-01-01", successor: "/v2" }),
      "/missing/:id": deprecated(),
      "/missing": deprecated({ brownouts: ["2029-01-01T00:00Z/PT1H"], sunsetAt: "2030-01-01" }),
    },
  };
  const file = await writeSettings(settings);
  const { code, text, errors } = await runLifecycle(["front", file, "--check"]);
  assertEquals([code, errors], [0, ""]);
  assertEquals(text.split("\n"), [
    "Listens on 127.0.0.1:8001, behind a proxy that says who the client is",
    `Forwards to ${backend.url}`,
    `Record: sqlite:${database} (does not exist yet; a start creates it)`,
    "Notice: /deprecation",
    "/v1: deprecated from 2020-01-01T00:00:00Z; removed at 2030-01-01T00:00:00Z; replaced by /v2; " +
    "HEAD gets 200 from the server behind",
    "/missing/:id: deprecated from 2020-01-01T00:00:00Z; no date of removal",
    "/missing: deprecated from 2020-01-01T00:00:00Z; brownout from 2029-01-01T00:00:00Z to " +
    "2029-01-01T01:00:00Z (503); removed at 2030-01-01T00:00:00Z; HEAD gets 404 from the server behind",
    "",
  ]);
  assert(!isFile(database), "the record was created");
});

once("an older Node gets one sentence", async () => {
  const { code, errors } = await runLifecycle(["front", "any.json"], OLD);
  assertEquals(code, 1);
  assertMatch(
    errors,
    /^lifecycle: lifecycle front needs Node 22\.13 or later; this is Node v20\.\d+\.\d+\n$/,
  );
});
