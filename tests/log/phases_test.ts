import { assertEquals } from "@std/assert";
import { type RouteHold, underHolds } from "../../lib/lifecycle/hold.ts";
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
  const phases = new PhaseLog({
    policies: () => policies,
    clock: () => now,
    log: (event) => events.push(event),
  });
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
  const phases = new PhaseLog({
    policies: () => policies,
    clock,
    log: () => seconds.push(timers.now() / 1_000),
  });
  phases.start();
  await timers.pass(20_000);
  assertEquals(seconds, [5]);
  phases.stop();
});

Deno.test("PhaseLog.stop() logs the changes since the last tick", () => {
  let now = Date.parse("2027-02-01T12:00:00Z");
  const policies = { [AUDIO]: definePolicy({ deprecatedAt: "2027-02-01T12:00:01Z" }) };
  const events: LogEvent[] = [];
  const phases = new PhaseLog({
    policies: () => policies,
    clock: () => now,
    log: (event) => events.push(event),
  });
  phases.start(); // and leaves no timer
  now += 1_000;
  phases.stop();
  assertEquals(events, [{ event: "phase", route: AUDIO, phase: "deprecated" }]);
});

Deno.test("PhaseLog logs when a hold begins and ends, released or not, and the phases under it", () => {
  const start = Date.parse("2027-02-01T12:00:00Z");
  let now = start;
  const configured = {
    [AUDIO]: definePolicy({
      deprecatedAt: "2027-01-01",
      brownouts: ["2027-02-01T11:00Z/PT2H"],
      sunsetAt: "2027-03-01",
    }),
    [VIDEO]: definePolicy({ deprecatedAt: "2027-01-01" }),
  };
  const events: LogEvent[] = [];
  let holds: RouteHold[] = [];
  const phases = new PhaseLog({
    policies: () => underHolds(configured, holds),
    clock: () => now,
    log: (event) => events.push(event),
  });
  const hold = (begin: number, end: number, more: Partial<RouteHold> = {}): RouteHold => {
    return {
      start: start + begin * 1_000,
      end: start + end * 1_000,
      route: AUDIO,
      because: "a",
      ...more,
    };
  };
  const line = (hold: "begins" | "ends", route: string, because: string, until?: string) => {
    return { event: "hold", route, hold, ...until && { until }, because } as const;
  };
  const phase = (phase: string, until: string) => {
    return { event: "phase", route: AUDIO, phase, until: `2027-02-01T${until}Z` } as const;
  };
  const steps: [seconds: number, holds: RouteHold[], events: LogEvent[]][] = [
    [0, [], []],
    [5, [hold(2, 300)], [
      line("begins", AUDIO, "a", "2027-02-01T12:05:00Z"),
      { ...phase("deprecated", "12:05:00"), heldUntil: "2027-02-01T12:05:00Z" },
    ]],
    [10, [hold(2, 300), hold(8, 20, { route: undefined, because: "b" })], [
      line("begins", AUDIO, "b", "2027-02-01T12:00:20Z"),
      line("begins", VIDEO, "b", "2027-02-01T12:00:20Z"),
    ]],
    [20, [hold(2, 300), hold(8, 20, { route: undefined, because: "b" })], [
      line("ends", AUDIO, "b"),
      line("ends", VIDEO, "b"),
    ]],
    [25, [hold(2, 22)], [line("ends", AUDIO, "a"), phase("brownout", "13:00:00")]],
    [30, [hold(2, 22)], []],
  ];
  for (const [seconds, held, expected] of steps) {
    now = start + seconds * 1_000;
    holds = held;
    phases.tick();
    assertEquals(events.splice(0), expected, `${seconds} s`);
  }
  const late = new PhaseLog({
    policies: () => underHolds(configured, [hold(0, 60)]),
    clock: () => now,
    log: (event) => events.push(event),
  });
  late.tick();
  assertEquals(events.splice(0), [line("begins", AUDIO, "a", "2027-02-01T12:01:00Z")]);
  // A server learns of holds after this was made, and before it is started.
  holds = [];
  const started = new PhaseLog({
    policies: () => underHolds(configured, holds),
    clock: () => now,
    log: (event) => events.push(event),
  });
  holds = [hold(0, 60)];
  started.start();
  assertEquals(events, [line("begins", AUDIO, "a", "2027-02-01T12:01:00Z")]);
  started.stop();
});
