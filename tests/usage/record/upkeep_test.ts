import { assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { Retention } from "../../../lib/usage/record/upkeep.ts";
import { DAY, NOON } from "../../support/counted_call.ts";

const HOUR = 3_600_000;
const MIDNIGHT = NOON + DAY / 2;

/** What a ledger answers at an instant, if it is asked, and the day before which it is to forget. */
const ROWS: [
  now: number,
  outcome: "done" | "more" | "refused" | StorageError,
  asked: string | undefined,
][] = [
  [NOON, "refused", "2027-01-02"], // nobody counted a day ago
  [NOON + HOUR - 1, "done", undefined], // it refused less than an hour ago
  [NOON + HOUR, new StorageError("sqlite", "down"), "2027-01-02"],
  [NOON + HOUR + 1, "more", "2027-01-02"],
  [NOON + HOUR + 2, "more", "2027-01-02"],
  [NOON + HOUR + 3, "done", "2027-01-02"],
  [NOON + 2 * HOUR, "done", undefined], // once a day
  [MIDNIGHT - 1, "done", undefined],
  [MIDNIGHT, "refused", "2027-01-03"],
  [NOON - DAY, "done", "2027-01-01"], // the record was started again
  [MIDNIGHT + HOUR, "done", "2027-01-03"],
  [MIDNIGHT + DAY - 1, "done", undefined],
];

Deno.test("Retention.apply() deletes expired days once a day, and tries again until then", async () => {
  const retention = new Retention(30);
  for (const [now, outcome, expected] of ROWS) {
    let asked: string | undefined;
    const forget = (day: string, at: number) => {
      assertEquals(at, now);
      asked = day;
      return outcome instanceof Error ? Promise.reject(outcome) : Promise.resolve(outcome);
    };
    const applying = () => retention.apply({ forget }, now);
    if (outcome instanceof Error) await assertRejects(applying, StorageError);
    else await applying();
    assertEquals(asked, expected, new Date(now).toISOString());
  }
});
