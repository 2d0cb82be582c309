import { assertEquals } from "@std/assert";
import { type RouteHold, underHolds } from "../../lib/lifecycle/hold.ts";
import type { RoutePolicies } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { LogEvent } from "../../lib/log/log.ts";
import { PhaseLog } from "../../lib/log/phases.ts";
import { fakeTimers } from "../support/fake_timers.ts";

const AUDIO = "/audio/:token";
const VIDEO = "/video/:token";

const START = Date.parse("2027-02-01T12:00:00Z");
const definedAt = (deprecatedAt: string) => definePolicy({ deprecatedAt });

/** A log of changes of phase, its events, and the seconds that have passed. */
function phaseLog(policies: () => RoutePolicies) {
  const time = { seconds: 0 };
  const events: LogEvent[] = [];
  const clock = () => START + time.seconds * 1_000;
  const phases = new PhaseLog({ policies, clock, log: (event) => events.push(event) });
  return { phases, events, time };
}

Deno.test("PhaseLog logs each change of a route's phase since it was constructed, once", () => {
  const policies = {
    [AUDIO]: definePolicy({
      deprecatedAt: "2027-02-01T12:00:07Z",
      brownouts: ["2027-02-01T12:00:20Z/PT10S"],
      sunsetAt: "2027-02-01T13:00Z",
    }),
    [VIDEO]: definePolicy({ deprecatedAt: "2027-02-01T12:00:00Z", sunsetAt: "2027-02-01T13:00Z" }),
  };
  const { phases, events, time } = phaseLog(() => policies);
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
    time.seconds += seconds;
    phases.tick();
    assertEquals(events.splice(0), expected);
  }
});

Deno.test("PhaseLog ticks every five seconds until it is stopped, and then once more", async () => {
  using timers = fakeTimers();
  const policies = { [AUDIO]: definedAt("2027-02-01T12:00:01Z"), [VIDEO]: definedAt("2027-02-02") };
  const { phases, events, time } = phaseLog(() => policies);
  phases.start();
  time.seconds = 1;
  await timers.pass(4_999);
  assertEquals(events, []);
  await timers.pass(1);
  assertEquals(events, [{ event: "phase", route: AUDIO, phase: "deprecated" }]);
  time.seconds = 24 * 60 * 60;
  phases.stop(); // and leaves no timer
  assertEquals(events.splice(1), [{ event: "phase", route: VIDEO, phase: "deprecated" }]);
  assertEquals(timers.pending, 0);
});

Deno.test("PhaseLog logs when a hold begins and ends, released or not, and the phases under it", () => {
  const configured = {
    [AUDIO]: definePolicy({
      deprecatedAt: "2027-01-01",
      brownouts: ["2027-02-01T11:00Z/PT2H"],
      sunsetAt: "2027-03-01",
    }),
    [VIDEO]: definedAt("2027-01-01"),
  };
  let holds: RouteHold[] = [];
  const { phases, events, time } = phaseLog(() => underHolds(configured, holds));
  const hold = (begin: number, end: number, more: Partial<RouteHold> = {}): RouteHold => {
    const times = { start: START + begin * 1_000, end: START + end * 1_000 };
    return { ...times, route: AUDIO, because: "a", ...more };
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
    time.seconds = seconds;
    holds = held;
    phases.tick();
    assertEquals(events.splice(0), expected, `${seconds} s`);
  }
  // A server learns of holds after this was made, and before it is started.
  for (const isStarted of [false, true]) {
    holds = isStarted ? [] : [hold(0, 60)];
    const late = phaseLog(() => underHolds(configured, holds));
    holds = [hold(0, 60)];
    if (isStarted) late.phases.start();
    else late.phases.tick();
    late.phases.stop();
    assertEquals(late.events, [line("begins", AUDIO, "a", "2027-02-01T12:01:00Z")]);
  }
});
