import { assertEquals } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { LogEvent } from "../../lib/log/log.ts";
import { PhaseLog } from "../../lib/log/phases.ts";
import { fakeTimers } from "../support/fake_timers.ts";

const AUDIO = "/audio/:token";
const VIDEO = "/video/:token";

Deno.test("PhaseLog logs each change of a route's phase since it was constructed, once", () => {
  let now = Date.parse("2027-02-01T12:00:00Z");
  const policies = {
    [AUDIO]: definePolicy({
      deprecatedAt: "2027-02-01T12:00:07Z",
      brownouts: ["2027-02-01T12:00:20Z/PT10S"],
      sunsetAt: "2027-02-01T13:00Z",
    }),
    [VIDEO]: definePolicy({ deprecatedAt: "2027-02-01T12:00:00Z", sunsetAt: "2027-02-01T13:00Z" }),
  };
  const events: LogEvent[] = [];
  const phases = new PhaseLog({ policies, clock: () => now, log: (event) => events.push(event) });
  const change = { event: "phase", route: AUDIO } as const;
  const steps: [seconds: number, events: LogEvent[]][] = [
    [0, []],
    [5, []],
    [5, [{ ...change, phase: "deprecated", until: "2027-02-01T12:00:20Z" }]],
    [5, []],
    [5, [{ ...change, phase: "brownout", until: "2027-02-01T12:00:30Z" }]],
    [5, []],
    [5, [{ ...change, phase: "deprecated", until: "2027-02-01T13:00:00Z" }]],
    [3_570, [{ ...change, phase: "removed" }, { ...change, route: VIDEO, phase: "removed" }]],
    [5, []],
  ];
  for (const [seconds, expected] of steps) {
    now += seconds * 1_000;
    phases.tick();
    assertEquals(events.splice(0), expected);
  }
});

Deno.test("PhaseLog ticks every five seconds until it is stopped", async () => {
  using timers = fakeTimers();
  const start = Date.parse("2027-02-01T12:00:00Z");
  const policies = { [AUDIO]: definePolicy({ deprecatedAt: "2027-02-01T12:00:01Z" }) };
  const seconds: number[] = [];
  const clock = () => start + timers.now();
  const phases = new PhaseLog({ policies, clock, log: () => seconds.push(timers.now() / 1_000) });
  phases.start();
  await timers.pass(20_000);
  assertEquals(seconds, [5]);
  phases.stop();
});

Deno.test("PhaseLog.stop() logs the changes since the last tick", () => {
  let now = Date.parse("2027-02-01T12:00:00Z");
  const policies = { [AUDIO]: definePolicy({ deprecatedAt: "2027-02-01T12:00:01Z" }) };
  const events: LogEvent[] = [];
  const phases = new PhaseLog({ policies, clock: () => now, log: (event) => events.push(event) });
  phases.start(); // and leaves no timer
  now += 1_000;
  phases.stop();
  assertEquals(events, [{ event: "phase", route: AUDIO, phase: "deprecated" }]);
});
