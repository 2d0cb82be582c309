/** Every call that the removal breaks reaches the gate, from an application's request to the verdict. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { DatabaseSync } from "node:sqlite";
import type { LifecycleCall } from "../../lib/lifecycle/mod.ts";
import { openUsage, type Usage } from "../../lib/usage/mod.ts";
import {
  type ApplicationCall,
  callFetch,
  callNode,
  CALLS,
  FETCH_CALLS,
  POLICY,
} from "../support/application_calls.ts";
import { ANNOUNCED, askGate, askVerdict, CALLED, CLEAR } from "../support/gate.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { until } from "../support/within.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

/** The record began before the period of the gate. */
const AGED = "UPDATE media_head_session SET began = 0; UPDATE media_head_ledger SET started = 0";

type Make = (usage: Usage, route: string, call: ApplicationCall, more?: object) => Promise<void>;

const byFetch: Make = (usage, route, call, more) =>
  callFetch(call, (handler, given) => usage.withLifecycle(handler, route, { ...given, ...more }));
const byNode: Make = (usage, route, call, more) =>
  callNode(call, (given) => usage.retire(route, { ...given, ...more }));

/** The verdict on a route that nobody calls. */
const QUIET = Date.now() < (POLICY.sunsetAt ?? 0) ? ANNOUNCED : CLEAR;

/** Asks while a process counts routes, without which nothing is clear. */
async function whileCounted(
  database: string,
  routes: readonly string[],
  ask: () => Promise<void>,
): Promise<void> {
  const policies = Object.fromEntries(routes.map((route) => [route, POLICY]));
  const usage = await openUsage(database, { routes: policies, log() {} });
  for (const route of routes) usage.retire(route);
  await until("the routes to be on record", async () => {
    const { json: { verdicts } } = await askVerdict(database);
    const counted = verdicts.filter(({ verdict }) => verdict !== "unknown");
    return counted.length === verdicts.length &&
      counted.map(({ route }) => route).toSorted().join() === routes.toSorted().join();
  });
  await ask();
  await usage.close();
}

/** Makes each call in turn, and asks the gate about each, as if each had a route of its own. */
async function judgeCalls(database: string, age: () => Promise<unknown>): Promise<void> {
  const made: [make: Make, call: ApplicationCall][] = [
    ...[...CALLS, ...FETCH_CALLS].map((call): [Make, ApplicationCall] => [byFetch, call]),
    ...CALLS.map((call): [Make, ApplicationCall] => [byNode, call]),
  ];
  const routeOf = (index: number) => `/${index}`;
  const routes = Object.fromEntries(made.map((_, index) => [routeOf(index), POLICY]));
  const usage = await openUsage(database, { routes });
  for (const route of Object.keys(routes)) usage.retire(route);
  {
    using _error = stub(console, "error"); // an option fails
    for (const [index, [make, call]] of made.entries()) await make(usage, routeOf(index), call);
  }
  await usage.close();
  await age();
  const verdicts: unknown[] = [];
  await whileCounted(database, Object.keys(routes), async () => {
    for (const [index, [make, { what }]] of made.entries()) {
      const [status] = await askGate(database, "--route", routeOf(index));
      verdicts.push([what, make === byNode, status]);
    }
  });
  const expected = made.map(([make, { what, breaks }]) => {
    return [what, make === byNode, breaks ? CALLED : QUIET];
  });
  assertEquals(verdicts, expected);
}

/** A record on one of the engines, and what makes it begin before the period of the gate. */
type Judge = (database: string, age: () => Promise<unknown>) => Promise<void>;

/** Registers a test on SQLite. */
function onSqlite(what: string, judge: Judge): void {
  needing("files", "network", "environment")(`on SQLite ${what}`, () =>
    inFolder(async (folder) => {
      const path = `${folder}/calls.sqlite`;
      await judge(`sqlite:${path}`, () => {
        using database = new DatabaseSync(path);
        return Promise.resolve(database.exec(AGED));
      });
    }));
}

/** Registers a test on both engines. */
function onBoth(what: string, judge: Judge): void {
  onSqlite(what, judge);
  needing(...POSTGRES)(`on PostgreSQL ${what}`, async () => {
    const name = await postgres().createDatabase();
    await judge(postgres().urlOf(name), () => postgres().query(AGED, name));
  });
}

onBoth("the gate knows every call that the removal breaks, whoever is refused", judgeCalls);

/** One status of each class that counts as an answer or not, and whether that call is on record. */
const STATUSES: [status: number, isCall: boolean, isCallAsAnswer: boolean][] = [
  [204, true, true],
  [304, true, true],
  [400, false, false],
  [404, false, true],
  [410, false, true],
  [409, true, true],
  [429, true, true],
  [500, true, true],
];

onSqlite(
  "404 and 410 are calls where the application says that they are answers",
  async (database) => {
    const made = STATUSES.flatMap(([status, isCall, isCallAsAnswer]) => [
      { status, answers: undefined, isExpected: isCall },
      { status, answers: [404, 410], isExpected: isCallAsAnswer },
    ]);
    const routes = Object.fromEntries(made.map((_, index) => [`/${index}`, POLICY]));
    const usage = await openUsage(database, { routes });
    for (const make of [byFetch, byNode]) {
      for (const [index, { status, answers }] of made.entries()) {
        const call = { ...CALLS[0] as ApplicationCall, answer: status };
        const told: boolean[] = [];
        const onCount = ({ breaks }: LifecycleCall) => void told.push(breaks);
        await make(usage, `/${index}`, call, { answers, onCount });
        assertEquals(told, [made[index]?.isExpected], `${status} ${answers}`);
      }
    }
    await usage.close();
    for (const [index, { status, answers, isExpected }] of made.entries()) {
      const [, text] = await askGate(database, "--json", "--route", `/${index}`);
      const { routes: [{ calls, otherRequests }] } = JSON.parse(text);
      assertEquals([calls, otherRequests], isExpected ? [2, 0] : [0, 2], `${status} ${answers}`);
    }
  },
);

/** Names that a route may have. */
const NAMES = ["__proto__", "constructor", "/播客/é", "a b", '"; DROP TABLE usage; --', "𝒳"];

onBoth("the gate knows routes by the names that they were given", async (database, age) => {
  const routes = Object.fromEntries(NAMES.map((name) => [name, POLICY]));
  const usage = await openUsage(database, { routes });
  const [call] = CALLS as [ApplicationCall];
  for (const name of NAMES) usage.retire(name);
  await byFetch(usage, "__proto__", call);
  await usage.close();
  await age();
  await whileCounted(database, NAMES, async () => {
    const [status, text] = await askGate(database, "--json");
    assertEquals([status, JSON.parse(text).judged.toSorted()], [CALLED, NAMES.toSorted()]);
    for (const name of NAMES) {
      const [status] = await askGate(database, "--route", name);
      assertEquals(status, name === "__proto__" ? CALLED : QUIET, name);
    }
  });
});

onSqlite(
  "the gate on a route takes its parts along, also one that was deleted",
  async (database, age) => {
    const [call] = CALLS as [ApplicationCall];
    const run = async (routes: readonly string[], called: readonly string[]) => {
      const policies = Object.fromEntries(routes.map((name) => [name, POLICY]));
      const usage = await openUsage(database, { routes: policies, log() {} });
      for (const name of routes) usage.retire(name);
      for (const name of called) await byFetch(usage, name, call);
      await usage.close();
    };
    const judged = async (...words: string[]) => {
      const [status, text] = await askGate(database, "--json", ...words);
      return [status, JSON.parse(text).judged];
    };
    const [ALL, ACME, OTHER] = ["/v1", "/v1 for acme", "/v1/songs"];
    await run([ALL, ACME, OTHER], [ACME]);
    await age();
    await whileCounted(database, [ALL, ACME, OTHER], async () => {
      assertEquals(await judged("--route", ALL), [CALLED, [ALL, ACME]]);
      assertEquals(await judged("--route", ACME), [CALLED, [ACME]]);
      assertEquals((await judged("--route", OTHER))[0], QUIET);
    });
    await whileCounted(database, [ALL, OTHER], async () => {
      assertEquals(await judged(), [QUIET, [ALL, OTHER]]);
      assertEquals(await judged("--route", ALL), [CALLED, [ALL, ACME]]);
    });
  },
);
