import { assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { Retention } from "../../../lib/usage/record/retention.ts";
import { DAY, NOON } from "../../support/counted_call.ts";

const HOUR = 3_600_000;

Deno.test("Retention.apply() deletes expired days once a day, and tries again until then", async () => {
  const retention = new Retention(30);
  let outcome: boolean | Error = false;
  const asked: [day: string, now: number][] = [];
  const ledger = {
    forget(day: string, now: number) {
      asked.push([day, now]);
      return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
    },
  };
  const midnight = NOON + DAY / 2;

  await retention.apply(ledger, NOON);
  assertEquals(asked.splice(0), [["2027-01-02", NOON]], "nobody counted a day ago");
  await retention.apply(ledger, NOON + HOUR - 1);
  assertEquals(asked, [], "it refused less than an hour ago");
  outcome = new StorageError("sqlite", "down");
  await assertRejects(() => retention.apply(ledger, NOON + HOUR), StorageError, "down");
  assertEquals(asked.splice(0), [["2027-01-02", NOON + HOUR]]);
  outcome = true;
  await retention.apply(ledger, NOON + HOUR + 5_000);
  assertEquals(asked.splice(0), [["2027-01-02", NOON + HOUR + 5_000]]);

  for (const now of [NOON + 2 * HOUR, midnight - 1]) await retention.apply(ledger, now);
  assertEquals(asked, [], "once a day");
  for (const now of [midnight, midnight + DAY - 1]) await retention.apply(ledger, now);
  assertEquals(asked, [["2027-01-03", midnight]]);
});
