import { assert, assertEquals } from "@std/assert";
import { FlushSchedule } from "../../../lib/usage/record/flush_schedule.ts";
import { fakeTimers } from "../../support/fake_timers.ts";

Deno.test("FlushSchedule flushes every five seconds until it is stopped", async () => {
  using timers = fakeTimers();
  const flushes: [at: number, isLast: boolean][] = [];
  const schedule = new FlushSchedule((isLast) => {
    flushes.push([timers.now(), isLast]);
    return Promise.resolve();
  });
  await timers.pass(6_000);
  assertEquals(flushes, [], "not started");
  schedule.start();
  await timers.pass(12_000);
  schedule.stop();
  await timers.pass(12_000);
  assertEquals(flushes, [[11_000, false], [16_000, false]]);
  await schedule.flush();
  assertEquals(flushes.at(-1), [30_000, true]);
});

Deno.test("FlushSchedule.hasten() flushes at once, but at most every 100 ms", async () => {
  using timers = fakeTimers();
  const flushes: number[] = [];
  const schedule = new FlushSchedule(() => {
    flushes.push(timers.now());
    return Promise.resolve();
  });
  const asked = [0, 0, 30, 99, 100, 350, 351, 460];
  for (const at of asked) {
    await timers.pass(at - timers.now());
    schedule.hasten();
  }
  await timers.pass(40);
  assertEquals(flushes, [0, 100, 200, 350, 450]);
  schedule.stop();
  schedule.hasten();
  await timers.pass(1_000);
  assertEquals(flushes.length, 5, "neither the one that was due, nor another");
});

Deno.test("FlushSchedule.flush() runs one flush at a time, and has one wait", async () => {
  const ended = Promise.withResolvers<void>();
  const begun: boolean[] = [];
  const schedule = new FlushSchedule((isLast) => {
    begun.push(isLast);
    return ended.promise;
  });
  const first = schedule.flush();
  await Promise.resolve();
  const waiting = schedule.flush();
  assert(schedule.flush() === waiting);
  schedule.stop();
  assertEquals(begun, [false]);
  ended.resolve();
  await Promise.all([first, waiting]);
  assertEquals(begun, [false, true], "whether it is the last is known when it begins");
});
