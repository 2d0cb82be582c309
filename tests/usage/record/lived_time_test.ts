import { assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { LivedTime } from "../../../lib/usage/record/lived_time.ts";
import { NOON } from "../../support/counted_call.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** How far the ledger's time and the process's lifetime go on before each reading. */
const ROWS: [what: string, readings: [ledger: number, lifetime: number][], hasLapsed: boolean][] = [
  ["both go on", [[HOUR, HOUR], [HOUR, HOUR]], false],
  ["the machine sleeps for a minute", [[MINUTE + 5_000, 5_000]], true],
  ["the machine sleeps for less", [[MINUTE + 4_999, 5_000]], false],
  ["the machine sleeps for less, twice", [[MINUTE - 1, 0], [MINUTE - 1, 0]], false],
  ["the machine has slept once", [[HOUR, 0], [5_000, 5_000]], true],
  ["the ledger's time stands still", [[0, HOUR], [5_000, 5_000]], false],
];

Deno.test("LivedTime has lapsed once the ledger's time advances by a minute beyond the lifetime", async () => {
  for (const [what, readings, hasLapsed] of ROWS) {
    let [now, lifetime] = [NOON, 7];
    const lived = new LivedTime(now, () => lifetime);
    for (const [onLedger, ofProcess] of readings) {
      now += onLedger;
      lifetime += ofProcess;
      const time = { now, databaseTime: now - 1 };
      assertEquals(await lived.read(() => Promise.resolve(time)), time);
    }
    assertEquals(lived.hasLapsed, hasLapsed, what);
    if (hasLapsed) assertEquals(lived.end(), 0, "no heartbeat is recorded any more");
  }
});

Deno.test("LivedTime does not count the wait for an answer as lived through", async () => {
  let lifetime = 0;
  const lived = new LivedTime(NOON, () => lifetime);
  await lived.read(() => {
    lifetime += HOUR;
    return Promise.resolve({ now: NOON + HOUR, databaseTime: NOON + HOUR });
  });
  assertEquals(lived.hasLapsed, true);
});

Deno.test("LivedTime.end() is a minute after what the process lived through since the last reading", async () => {
  let lifetime = 3;
  const lived = new LivedTime(NOON, () => lifetime);
  lifetime += 1_000;
  assertEquals(lived.end(), NOON + 1_000 + MINUTE);
  await lived.read(() => {
    lifetime += 7_000; // the answer takes that long
    return Promise.resolve({ now: NOON + 5_000, databaseTime: NOON });
  });
  lifetime += 1_000;
  assertEquals(lived.end(), NOON + 6_000 + MINUTE);
  const down = () => Promise.reject(new StorageError("sqlite", "down"));
  await assertRejects(() => lived.read(down), StorageError, "down");
  assertEquals(await lived.read(() => Promise.resolve(undefined)), undefined);
  assertEquals([lived.end(), lived.hasLapsed], [NOON + 6_000 + MINUTE, false]);
});
