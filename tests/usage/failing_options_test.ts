/** Whatever an option of an application throws or returns, the call is answered and counted. */

import { definePolicy } from "@media-head/lifecycle";
import { assert, assertEquals, assertMatch } from "@std/assert";
import { stub } from "@std/testing/mock";
import { inspect } from "node:util";
import { sqliteAt } from "../../lib/database/place.ts";
import { nodeRuntime } from "../../lib/database/sqlite/node_runtime.ts";
import { type LogEvent, openUsage } from "../../lib/usage/mod.ts";
import { openLedger } from "../../lib/usage/record/open_ledger.ts";
import { inFolder } from "../support/media_cli.ts";
import { listening } from "../support/node_server.ts";
import { needing } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { requestRaw } from "../support/raw_http.ts";
import { UNREADABLE } from "../support/unreadable.ts";

/** The phase of a call: served, or refused. */
const PHASES = {
  deprecated: definePolicy({ deprecatedAt: "2020-01-01" }),
  removed: definePolicy({
    deprecatedAt: "2020-01-01",
    sunsetAt: "2021-01-01",
    afterSunset: "redirect",
  }),
};

const VALUES: Readonly<Record<string, unknown>> = {
  ...UNREADABLE,
  nothing: undefined,
  "an error caused by an object without prototype": new Error("not valid", {
    cause: Object.create(null), // as `request.query` is in Express 5
  }),
};

/** How an option fails with a value. */
const WAYS: Readonly<Record<string, (value: unknown) => () => unknown>> = {
  throws: (value) => () => {
    throw value;
  },
  returns: (value) => () => value,
  "rejects with": (value) => () => Promise.reject(value),
};

/** Each way of each value: 39. */
const FAILURES = Object.entries(WAYS).flatMap(([way, failing]) =>
  Object.entries(VALUES).map(([what, value]): [name: string, fails: () => never] => [
    `${way} ${what}`,
    failing(value) as () => never,
  ])
);

/** The options of a route, and `log`. */
const OPTIONS = [
  ...["client", "log", "successor", "applies", "onCount", "refusalFields", "refusalBody", "route"],
  "clock",
];

/** Fails as a console does with values that cannot be inspected, on Deno or on Node. */
function inspected(...values: unknown[]): void {
  for (const value of values) Deno.inspect(value), inspect(value);
}

/** Returns the number of calls on record by route. */
async function countsIn(path: string): Promise<Record<string, number>> {
  const { ledger, close } = await openLedger(sqliteAt(path), { runtime: nodeRuntime });
  const counts: Record<string, number> = {};
  for (const { route, calls, impact } of await Array.fromAsync(ledger.usage("")).finally(close)) {
    if (impact === "breaking") counts[route] = (counts[route] ?? 0) + calls;
  }
  return counts;
}

for (const option of OPTIONS) {
  needing("files", "network")(
    `no failure of the option ${option} loses a call`,
    () =>
      inFolder(async (folder) => {
        using _error = stub(console, "error", inspected);
        using _warn = stub(console, "warn", inspected);
        const path = `${folder}/calls.sqlite`;
        const rows = Object.entries(PHASES).flatMap(([phase, policy]) =>
          FAILURES.map(([what, fails]) => ({ name: `${phase}: ${what}`, policy, fails }))
        );
        const routes = Object.fromEntries(rows.map(({ name, policy }) => [name, policy]));
        let failLog: (() => unknown) | undefined;
        const events: LogEvent[] = [];
        const log = (event: LogEvent) =>
          failLog === undefined ? void events.push(event) : failLog();
        const usage = await openUsage(`sqlite:${path}`, { routes, log: log as () => void });
        for (const { name, fails } of rows) {
          let isOpening = true; // the clock is read when the option is checked
          const clock = () => isOpening ? 0 : fails();
          const broken = () => { // a fault of its own, so that each is logged
            throw Object.assign(new Error("so that there is an event to log"), { code: name });
          };
          const given = option === "log"
            ? { client: broken }
            : { [option]: option === "clock" ? clock : fails };
          if (option === "log") failLog = fails;
          const handler = usage.withLifecycle(() => new Response("old"), name, given);
          const retired = usage.retire(name, given);
          isOpening = false;
          const { status, body } = await handler(new Request("http://test/v1"));
          await body?.cancel();
          await using server = await listening((request, response) =>
            retired(request, response, () => response.end("old"))
          );
          const answer = await requestRaw(server.port, "GET", "/v1");
          assert([200, 308, 410].includes(status), `${name}: ${status}`);
          assertEquals(answer.status, status, name);
        }
        await usage.close();
        const errors = events.filter(({ event }) => event === "error");
        if (option === "client") assert(errors.length > 1, "the log says what failed");
        assertEquals(
          await countsIn(path),
          Object.fromEntries(rows.map(({ name }) => [name, 2])),
        );
      }),
  );
}

needing(...POSTGRES)("no failure of the option password loses a call", async () => {
  await using server = await PostgresServer.start();
  const name = await server.createDatabase();
  const url = new URL(server.urlOf(name));
  const good = decodeURIComponent(url.password);
  const routes = Object.fromEntries(FAILURES.map(([name]) => [name, PHASES.deprecated]));
  await (await openUsage(url.href, { routes })).close(); // creates the tables
  url.password = "";
  using _error = stub(console, "error", inspected);
  const recorded: string[] = [];
  for (const [route, fails] of FAILURES) {
    let isFailing = true;
    const password = () => isFailing ? fails() : good;
    const opening = openUsage(url.href, { routes, password, log() {} });
    const usage = await opening.catch((error) => {
      assertMatch(error.message, /password: expected a function that returns the password, got /);
    });
    if (usage === undefined) continue; // what is no password stays none
    assert(usage.fault !== undefined, route);
    const handler = usage.withLifecycle(() => new Response("old"), route);
    assertEquals((await handler(new Request("http://test/v1"))).status, 200);
    isFailing = false;
    await usage.close();
    recorded.push(route);
  }
  const counts = await server.query("SELECT sum(calls) FROM media_head_usage GROUP BY route", name);
  assertEquals(counts.map(Number), recorded.map(() => 1));
  for (const way of ["throws", "rejects with"]) {
    const routes = recorded.filter((route) => route.startsWith(way));
    assertEquals(routes.length, Object.keys(VALUES).length, way);
  }
});
