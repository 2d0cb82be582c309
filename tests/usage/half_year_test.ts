/** Half a year with a crash every week, by a clock of the test's, and the gate on every day of it. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { Recorder } from "../../lib/usage/record/recorder.ts";
import { reportUsage } from "../../lib/usage/verdict/report.ts";
import { readSessions } from "../../lib/usage/verdict/waiting.ts";
import { ANSWER, countOne, NOON, PROCESS } from "../support/counted_call.ts";
import { ledgerAt, openLedgerDatabase } from "../support/ledger_at.ts";
import { DAY, HOUR, MINUTE } from "../support/usage_report.ts";

const DAYS = 182;
/** The gate asks for so many whole days. */
const PERIOD = 30;
const WEEK = 7;

/** What happens, and the verdict on each day after the first month, without a word and with one. */
interface Scenario {
  readonly what: string;
  readonly hasCrashes: boolean;
  /** Whether a monitor, which the gate ignores, calls every minute. */
  readonly hasMonitor: boolean;
  readonly verdict: "clear" | "unknown";
}

const SCENARIOS: readonly Scenario[] = [
  { what: "a crash a week, and no call", hasCrashes: true, hasMonitor: false, verdict: "clear" },
  { what: "a monitor, and no crash", hasCrashes: false, hasMonitor: true, verdict: "clear" },
  { what: "a monitor, and a crash a week", hasCrashes: true, hasMonitor: true, verdict: "unknown" },
];

for (const { what, hasCrashes, hasMonitor, verdict } of SCENARIOS) {
  Deno.test(`half a year with ${what} is ${verdict} without a word`, async () => {
    const idle = setInterval(() => {});
    clearInterval(idle);
    using _ = stub(globalThis, "setInterval", () => idle); // it flushes when the test says so
    await using database = await openLedgerDatabase();
    let now = NOON;
    const ledger = ledgerAt(database, () => now);
    const { route } = ANSWER;
    const start = async () => {
      const started = now;
      const recorder = new Recorder({
        ledger,
        policies: { [route]: definePolicy({ deprecatedAt: "2027-01-01" }) },
        process: { ...PROCESS, started },
        retainDays: 400,
        clock: () => now,
        lifetime: () => now - started,
        log() {},
      });
      await recorder.start();
      return recorder;
    };
    let recorder = await start();
    const monitor = async () => {
      recorder.intents.arrive(route);
      if (!recorder.intents.isHeld(route)) assertEquals(await recorder.intents.hold(route), true);
      countOne(recorder.meter, { userAgent: "Monitor/1.0" });
      recorder.intents.leave(route);
    };
    /** Lets an hour pass, with two heartbeats of the process. */
    const passHour = async () => {
      const end = now + HOUR;
      while (now < end) {
        for (let minute = 0; minute < 30; minute++) {
          now += MINUTE;
          if (hasMonitor) await monitor();
        }
        await recorder.flush();
      }
    };
    const gate = async (trustStops: boolean) => {
      const time = await ledger.time();
      now += 5_000;
      await recorder.flush();
      const report = await reportUsage(ledger, {
        ...await readSessions(ledger),
        days: PERIOD,
        now: time.now,
        isGate: true,
        ignore: ["app Monitor"],
        trustStops,
      });
      return report.verdict.state;
    };

    for (let day = 0; day < DAYS; day++) {
      for (let hour = 0; hour < DAY / HOUR; hour++) {
        await passHour();
        // At any hour but the last: for a minute, the gate does not know that a process has ended.
        if (hasCrashes && day % WEEK === 3 && hour === day % 23) {
          if (hasMonitor) await monitor(); // it is answered, and not on record
          now += 4_000; // it is killed, and started again
          recorder = await start();
        }
      }
      if (day <= PERIOD) continue;
      assertEquals([await gate(false), await gate(true)], [verdict, "clear"], `day ${day}`);
    }
    const sessions = (await ledger.sessions()).length;
    assertEquals(sessions, hasCrashes ? 1 + DAYS / WEEK : 1, "each crash was one");
  });
}
