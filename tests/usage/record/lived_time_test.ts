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
      assertEquals(await lived.read(ledgerAt(now)), { now, clock: now });
    }
    assertEquals(lived.hasLapsed, hasLapsed, what);
  }
});

Deno.test("LivedTime does not count the wait for an answer as lived through", async () => {
  let lifetime = 0;
  const lived = new LivedTime(NOON, () => lifetime);
  await lived.read({
    time() {
      lifetime += HOUR;
      return Promise.resolve({ now: NOON + HOUR, clock: NOON + HOUR });
    },
  });
  assertEquals([lived.hasLapsed, lived.estimate()], [true, NOON + HOUR]);
});

Deno.test("LivedTime.estimate() goes on with the lifetime from the last reading", async () => {
  let lifetime = 3;
  const lived = new LivedTime(NOON, () => lifetime);
  lifetime += 1_000;
  assertEquals(lived.estimate(), NOON + 1_000);
  await lived.read(ledgerAt(NOON + 5_000));
  lifetime += 1_000;
  assertEquals(lived.estimate(), NOON + 6_000);
  const down = { time: () => Promise.reject(new StorageError("sqlite", "down")) };
  await assertRejects(() => lived.read(down), StorageError, "down");
  assertEquals([lived.estimate(), lived.hasLapsed], [NOON + 6_000, false]);
});

function ledgerAt(now: number) {
  return { time: () => Promise.resolve({ now, clock: now }) };
}
