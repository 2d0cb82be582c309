/** Every call that the removal breaks reaches the gate, from an application's request to the verdict. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { DatabaseSync } from "node:sqlite";
import process from "node:process";
import { openUsage, type Usage } from "../../lib/usage/mod.ts";
import { runUsage } from "../../lib/usage/program.ts";
import {
  type ApplicationCall,
  callFetch,
  callNode,
  CALLS,
  FETCH_CALLS,
  POLICY,
} from "../support/application_calls.ts";
import { inFolder } from "../support/media_cli.ts";
import { needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";

const postgres = shared(POSTGRES, () => PostgresServer.start());

/** The record began before the period of the gate. */
const AGED = "UPDATE session SET began = 0; UPDATE ledger SET started = 0";

type Make = (usage: Usage, route: string, call: ApplicationCall) => Promise<void>;

const byFetch: Make = (usage, route, call) =>
  callFetch(call, (handler, options) => usage.withLifecycle(handler, route, options));
const byNode: Make = (usage, route, call) =>
  callNode(call, (options) => usage.retire(route, options));

/** Returns the gate's exit status for a route: 0 if nobody called, 1 if somebody did. */
async function gate(database: string, route: string): Promise<number> {
  const write = ((_: string, done?: () => void) => {
    done?.();
    return true;
  }) as typeof process.stdout.write;
  using _stdout = stub(process.stdout, "write", write);
  return await runUsage(["--database", database, "--gate", "1", "--route", route]);
}

/** Makes each call in turn, and asks the gate about each, as if each had a route of its own. */
async function judge(database: string, age: () => Promise<unknown>): Promise<void> {
  const made: [make: Make, call: ApplicationCall][] = [
    ...[...CALLS, ...FETCH_CALLS].map((call): [Make, ApplicationCall] => [byFetch, call]),
    ...CALLS.map((call): [Make, ApplicationCall] => [byNode, call]),
  ];
  const routeOf = (index: number) => `/${index}`;
  const routes = Object.fromEntries(made.map((_, index) => [routeOf(index), POLICY]));
  const usage = await openUsage(database, { routes });
  {
    using _error = stub(console, "error"); // an option fails
    for (const [index, [make, call]] of made.entries()) await make(usage, routeOf(index), call);
  }
  await usage.close();
  await age();
  const verdicts: unknown[] = [];
  for (const [index, [make, { what }]] of made.entries()) {
    verdicts.push([what, make === byNode, await gate(database, routeOf(index))]);
  }
  const expected = made.map(([make, { what, breaks }]) => [what, make === byNode, Number(breaks)]);
  assertEquals(verdicts, expected);
}

needing("files", "network", "environment")(
  "the gate on SQLite knows every call that the removal breaks, whoever is refused",
  () =>
    inFolder(async (folder) => {
      const path = `${folder}/calls.sqlite`;
      await judge(`sqlite:${path}`, () => {
        using database = new DatabaseSync(path);
        return Promise.resolve(database.exec(AGED));
      });
    }),
);

needing(...POSTGRES)(
  "the gate on PostgreSQL knows every call that the removal breaks, whoever is refused",
  async () => {
    const name = await postgres().createDatabase();
    await judge(postgres().urlOf(name), () => postgres().query(AGED, name));
  },
);
