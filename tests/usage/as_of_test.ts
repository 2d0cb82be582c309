/**
 * Whoever calls and asks shortly afterwards sees the call, whenever the last heartbeat was. One who asks
 * sooner is told of which instant the verdict is, which is before the call.
 */

import { assert, assertEquals } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { openUsage } from "../../lib/usage/mod.ts";
import { askGate, CALLED, CLEAR } from "../support/gate.ts";
import { needing } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { addPast, recordOnPostgres } from "../support/recorded_processes.ts";
import { Relay } from "../support/relay.ts";
import { until } from "../support/within.ts";

/** The number of calls, each to a route of its own, at any moment between two heartbeats. */
const TRIES = 2;

needing(...POSTGRES)("no verdict is clear as of a time after an answer", async () => {
  await using server = await PostgresServer.start();
  await using relay = new Relay(server.port);
  const place = await recordOnPostgres(server);
  const policy = definePolicy({ deprecatedAt: "2026-01-01" });
  const names = Array.from({ length: TRIES }, (_, index) => `/${index}`);
  const routes = Object.fromEntries(names.map((name) => [name, policy]));
  const url = server.urlOf(new URL(place.url).pathname.slice(1), relay.port);
  const usage = await openUsage(url, { routes, log() {} });
  const handlers = names.map((name) => usage.withLifecycle(() => new Response("old"), name));
  await addPast(place);
  relay.delay = 100; // each way
  for (const [index, name] of names.entries()) {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 3_000));
    await (await handlers[index]?.(new Request(`http://test${name}`)))?.text();
    const answered = Date.now();
    await until("the call", async () => {
      const [status, text] = await askGate(place.url, "--json", "--route", name);
      if (status === CALLED) return true;
      assertEquals(status, CLEAR, text);
      const { asOf } = JSON.parse(text);
      assert(Date.parse(asOf) <= answered, `as of ${asOf}, but answered at ${answered}`);
      return false;
    });
  }
  await usage.close();
});
