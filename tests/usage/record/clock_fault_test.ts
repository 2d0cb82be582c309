import { assertEquals } from "@std/assert";
import { clockFault } from "../../../lib/usage/record/recorder.ts";
import { DAY, NOON } from "../../support/counted_call.ts";

const MINUTE = 60_000;

Deno.test("clockFault() says both times if they differ by a minute or more", () => {
  for (const offset of [0, MINUTE - 1, 1 - MINUTE]) {
    assertEquals(clockFault({ here: NOON + offset, inDatabase: NOON }), undefined, `${offset}`);
  }
  const rows: [offset: number, here: string][] = [
    [MINUTE, "2027-02-01T12:01:00.000Z"],
    [-MINUTE, "2027-02-01T11:59:00.000Z"],
    [20 * DAY, "2027-02-21T12:00:00.000Z"],
    [-20 * DAY, "2027-01-12T12:00:00.000Z"],
  ];
  for (const [offset, here] of rows) {
    assertEquals(
      clockFault({ here: NOON + offset, inDatabase: NOON }),
      `it is ${here} here, but 2027-02-01T12:00:00.000Z in the database: correct the clock that ` +
        "is wrong. Phases begin and end by the clock here; calls are recorded by the database's",
    );
  }
});
