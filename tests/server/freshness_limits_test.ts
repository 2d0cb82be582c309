import { assert, assertEquals } from "@std/assert";
import type { Field } from "../../lib/http/outcome.ts";
import { limitFreshnessForReuse } from "../../lib/lifecycle/freshness.ts";
import { FreshnessLimits } from "../../lib/server/freshness_limits.ts";

const BROWNOUT = Date.parse("2027-03-01T09:00:00Z");
const END = new Date(BROWNOUT).toUTCString();

/** Fields of responses, in several orders. */
const FIELDS: Field[][] = [
  [["ETag", '"1"'], ["Cache-Control", "max-age=300"], ["Link", "</>; rel=index"]],
  [["Cache-Control", "max-age=60, stale-while-revalidate=9"], ["ETag", '"2"']],
  [["CDN-Cache-Control", "max-age=300"]],
  [["ETag", '"3"']],
  [["Cache-Control", "max-age=300"], ["Date", new Date(BROWNOUT - 90e3).toUTCString()]],
  [["Cache-Control", "no-store"], ["CDN-Cache-Control", "max-age=90"], ["X-Accel-Expires", "70"]],
  [["Expires", END], ["ETag", '"4"'], ["Cache-Control", "public"]],
  [["Edge-Control", "max-age=1d"], ["Cache-Control", "max-age=9;a"], ["X-Accel-Expires", "1d"]],
  [["Expires", END], ["Date", new Date(BROWNOUT - 90e3).toUTCString()]],
];

const ANSWERS = [200, 304, 404, 503]
  .flatMap((status) => [[status, false], [status, true]] as [number, boolean][]);

Deno.test("limit() returns what limitFreshnessForReuse() does, whatever was asked before", () => {
  const limits = new FreshnessLimits();
  const instants = [400e3, 302e3, 301e3, 71e3, 70e3, 61e3, 2e3, 1e3, 0]
    .flatMap((left) => [-1, 0, 1].map((shift) => BROWNOUT - left + shift));
  const ends = [BROWNOUT, BROWNOUT + 60_000, Infinity];
  for (const now of [...instants, ...instants.toReversed()]) {
    for (const until of ends) {
      for (const fields of FIELDS) {
        for (const method of ["HEAD", "GET", "OPTIONS"]) {
          for (const [status, isAuthorized] of ANSWERS) {
            const limit = { until, now, method, status, isAuthorized };
            const expected = limitFreshnessForReuse(fields, limit);
            assertEquals(limits.limit(fields, limit), expected, JSON.stringify([limit, fields]));
          }
        }
      }
    }
  }
});

Deno.test("limit() computes nothing anew until something changes", () => {
  const limits = new FreshnessLimits();
  const at = (now: number) => {
    const limit = { until: BROWNOUT, now, method: "HEAD", status: 200, isAuthorized: false };
    const { fields, unchangedUntil } = limits.limit([["Cache-Control", "max-age=300"]], limit);
    return { field: fields[0], unchangedUntil };
  };
  const { field, unchangedUntil } = at(BROWNOUT - 400_000);
  assert(at(unchangedUntil - 1).field === field);
  const next = at(unchangedUntil); // an age shrinks every second
  assertEquals(next.unchangedUntil, unchangedUntil + 1_000);
  assert(at(unchangedUntil + 999).field === next.field);
});
