import { assertEquals } from "@std/assert";
import { HeartbeatSchedule } from "../../../lib/usage/record/heartbeat_schedule.ts";
import { fakeTimers } from "../../support/fake_timers.ts";

/** What happens at an instant, in milliseconds, and the instants at which heartbeats begin. */
const ROWS: [
  what: string,
  happens: (readonly [
    at: number,
    what: "count" | "flush" | "stop" | "fails" | "mended" | "last" | "slow",
  ])[],
  beats: number[],
][] = [
  ["is not due before the first one", [], []],
  ["is due every five seconds", [[0, "flush"]], [0, 5_000, 10_000, 15_000]],
  ["is due as often if it takes long", [[0, "slow"], [0, "flush"]], [0, 5_000, 10_000, 15_000]],
  ["is due a tenth of a second after the first count", [[0, "flush"], [2_000, "count"]], [
    ...[0, 2_100, 7_100, 12_100],
  ]],
  ["begins a second after the last one at the earliest", [[0, "flush"], [10, "count"]], [
    ...[0, 1_000, 6_000, 11_000, 16_000],
  ]],
  ["is not put off by more counts", [[0, "count"], [50, "count"], [99, "count"]], [
    ...[100, 5_100, 10_100, 15_100],
  ]],
  [
    "is tried again after a second, then every five, whatever is counted",
    [[0, "fails"], [0, "flush"], [500, "count"], [1_500, "count"], [7_000, "mended"]],
    [0, 1_000, 6_000, 11_000, 16_000],
  ],
  ["is tried again after a second each time that it fails first", [
    ...[[0, "fails"], [0, "flush"], [500, "mended"], [1_500, "fails"]] as const,
  ], [0, 1_000, 6_000, 7_000, 12_000]],
  ["is not due after the last one, until something is counted", [
    ...[[0, "last"], [0, "flush"], [9_000, "mended"], [9_000, "count"]] as const,
  ], [0, 9_100, 14_100]],
  ["is not due after a stop", [[0, "flush"], [10, "count"], [20, "stop"]], [0]],
];

Deno.test("HeartbeatSchedule: a heartbeat", async (t) => {
  for (const [what, happens, beats] of ROWS) {
    await t.step(what, async () => {
      using timers = fakeTimers();
      const begun: number[] = [];
      let outcome: "recorded" | "failed" | "last" = "recorded";
      let takes = 0;
      const schedule = new HeartbeatSchedule(async () => {
        begun.push(timers.now());
        if (takes > 0) await new Promise((resolve) => setTimeout(resolve, takes));
        return outcome;
      }, () => timers.now() + 0.25);
      for (const [at, event] of happens) {
        await timers.pass(at - timers.now());
        if (event === "count" || event === "flush" || event === "stop") void schedule[event]();
        else if (event === "slow") takes = 3_000;
        else outcome = event === "fails" ? "failed" : event === "last" ? "last" : "recorded";
      }
      await timers.pass(16_900 - timers.now());
      assertEquals(begun.map(Math.floor), beats);
    });
  }
});

Deno.test("HeartbeatSchedule runs one heartbeat at a time, and one that is due meanwhile follows at once", async () => {
  for (const how of ["flush", "count"] as const) {
    using timers = fakeTimers();
    const begun: number[] = [];
    const ended = Promise.withResolvers<void>();
    const schedule = new HeartbeatSchedule(async () => {
      begun.push(timers.now());
      await ended.promise;
      return "recorded";
    }, () => timers.now());
    void schedule.flush();
    await timers.pass(10_000);
    const flushes = [1, 2].map(() => how === "flush" ? schedule.flush() : schedule.count());
    assertEquals(flushes[0] === flushes[1], true);
    await timers.pass(10_000);
    assertEquals(begun, [0]);
    ended.resolve();
    await timers.pass(5_000);
    assertEquals(begun, [0, 20_000, 25_000], how);
  }
});

Deno.test("HeartbeatSchedule runs one heartbeat at a time, also if one is asked for just as another ends", async () => {
  using timers = fakeTimers();
  let [inFlight, most, begun] = [0, 0, 0];
  const schedule = new HeartbeatSchedule(async () => {
    begun++;
    most = Math.max(most, ++inFlight);
    await Promise.resolve();
    inFlight--;
    return "recorded";
  }, () => timers.now());
  for (let microtasks = 0; microtasks < 20; microtasks++) {
    begun = 0;
    const all = [schedule.flush(), schedule.flush()];
    for (let turn = 0; turn < microtasks; turn++) await Promise.resolve();
    all.push(schedule.flush());
    await Promise.all(all);
    assertEquals([most, begun > 1], [1, true], `asked for after ${microtasks} microtasks`);
  }
  schedule.stop();
});
