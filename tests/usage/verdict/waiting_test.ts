import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { Intent, Session } from "../../../lib/usage/record/records.ts";
import { waitForHeartbeats } from "../../../lib/usage/verdict/waiting.ts";
import { DAY, intent, MINUTE, NOW, running, session } from "../../support/usage_report.ts";

const [server, stopped] = [running(10), session(10, 1 / 3600, { id: "b", ended: "stopped" })];
const [unsettled, settled] = [intent("a", 1), intent("a", 1, { settled: NOW + 1 })];

Deno.test("waitForHeartbeats() waits for running servers with calls to record, for two flushes", async () => {
  let passed = 0;
  using _timer = stub(globalThis, "setTimeout", (run, time = 0) => {
    passed += time;
    queueMicrotask(() => run());
    return 0 as unknown as ReturnType<typeof setTimeout>;
  });
  using _clock = stub(performance, "now", () => passed);
  const rows: [
    what: string,
    sessions: Session[],
    intents: Intent[],
    settledAfter: number,
    waits: number,
    options?: { lag?: number; routes?: string[] },
  ][] = [
    ["nobody", [], [], Infinity, 0],
    ["no intents", [server], [], Infinity, 0],
    ["it has settled its calls", [server], [settled], Infinity, 0],
    ["it soon does", [server], [unsettled], 3_000, 3_000],
    ["one of two soon does", [server], [settled, unsettled], 3_000, 3_000],
    ["it never does", [server], [unsettled], Infinity, 10_000],
    ["it never does, and the clock is behind", [server], [unsettled], Infinity, 40_000, {
      lag: 30_000,
    }],
    ["the clock is a minute behind", [server], [unsettled], Infinity, 0, { lag: MINUTE }],
    ["the only intent is of another route", [server], [unsettled], Infinity, 0, {
      routes: ["/v2"],
    }],
    ["its route is judged", [server], [unsettled], 3_000, 3_000, { routes: ["/audio/:token"] }],
    ["it is silent", [session(10, 1 / 60)], [unsettled], Infinity, 0],
    ["it has ended", [server, stopped], [intent("b", 1)], Infinity, 0],
    ["nobody has it", [server], [intent("x", 1)], Infinity, 0],
  ];
  for (const [what, sessions, intents, settledAfter, waits, { lag = 0, routes } = {}] of rows) {
    passed = 0;
    const ledger = {
      started: () => Promise.resolve(NOW - DAY),
      sessions: () => Promise.resolve(sessions),
      intents: () =>
        Promise.resolve(
          intents.map((each) => passed < settledAfter ? each : { ...each, settled: NOW + 1 }),
        ),
    };
    const awaited: string[] = [];
    const onWait = (awaits: readonly Session[]) => awaited.push(...awaits.map(({ id }) => id));
    await waitForHeartbeats(ledger, { now: NOW, databaseTime: NOW - lag }, { routes, onWait });
    assertEquals([passed, awaited], [waits, waits > 0 ? ["a"] : []], what);
  }
});
