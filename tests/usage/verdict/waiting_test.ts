import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { Session } from "../../../lib/usage/record/records.ts";
import { waitForReports } from "../../../lib/usage/verdict/waiting.ts";
import { ALWAYS, MINUTE, NOW, session } from "../../support/usage_report.ts";

const stopped = { id: "b", ended: "stopped" } as const;

Deno.test("waitForReports() waits for two flushes, once the database's clock has caught up", async () => {
  let passed = 0;
  using _timer = stub(globalThis, "setTimeout", (run, time = 0) => {
    passed += time;
    queueMicrotask(() => run());
    return 0 as unknown as ReturnType<typeof setTimeout>;
  });
  using _clock = stub(performance, "now", () => passed);
  const other = session(10, 1 / 3600, { id: "b" });
  const rows: [
    what: string,
    sessions: Session[],
    lag: number,
    reportsAfter: number,
    waits: number,
  ][] = [
    ["it has reported", ALWAYS, 0, 0, 0],
    ["it reports soon", [other], 0, 3_000, 3_000],
    ["it never reports", [other], 0, Infinity, 10_000],
    ["it never reports, and the clock is behind", [other], 30_000, Infinity, 40_000],
    ["the clock is a minute behind", [other], MINUTE, Infinity, 0],
    ["it is silent", [session(10, 1 / 60)], 0, Infinity, 0],
    ["it has ended", [session(10, 1 / 3600, stopped)], 0, Infinity, 0],
  ];
  for (const [what, sessions, lag, reportsAfter, waits] of rows) {
    passed = 0;
    const asked = { now: NOW, clock: NOW - lag };
    const ledger = {
      time: () => Promise.resolve(asked),
      sessions: () =>
        Promise.resolve(
          sessions.map((each) => passed < reportsAfter ? each : { ...each, reported: NOW + 1 }),
        ),
    };
    const awaited: string[] = [];
    await waitForReports(ledger, asked, (awaits) => awaited.push(...awaits.map(({ id }) => id)));
    assertEquals([passed, awaited], [waits, waits > 0 ? ["b"] : []], what);
  }
});
