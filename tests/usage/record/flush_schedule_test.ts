import { assert, assertEquals } from "@std/assert";
import { FlushSchedule } from "../../../lib/usage/record/flush_schedule.ts";
import { fakeTimers } from "../../support/fake_timers.ts";

Deno.test("FlushSchedule flushes every five seconds until it is stopped", async () => {
  using timers = fakeTimers();
  const flushes: number[] = [];
  const schedule = new FlushSchedule(() => {
    flushes.push(timers.now());
    return Promise.resolve();
  });
  await timers.pass(6_000);
  assertEquals(flushes, [], "not started");
  schedule.start();
  await timers.pass(12_000);
  schedule.stop();
  await timers.pass(12_000);
  assertEquals(flushes, [11_000, 16_000]);
  await schedule.flush();
  assertEquals(flushes.at(-1), 30_000, "whoever asks for one still gets it");
});

Deno.test("FlushSchedule.flush() runs one flush at a time, and has one wait", async () => {
  const ended = Promise.withResolvers<void>();
  let begun = 0;
  const schedule = new FlushSchedule(() => {
    begun++;
    return ended.promise;
  });
  const first = schedule.flush();
  await Promise.resolve();
  const waiting = schedule.flush();
  assert(schedule.flush() === waiting);
  assertEquals(begun, 1);
  ended.resolve();
  await Promise.all([first, waiting]);
  assertEquals(begun, 2);
});
