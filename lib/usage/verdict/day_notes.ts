/** What qualifies the calls of a day: brownouts, and what is not on record. */

import type { Policy } from "../../lifecycle/policy.ts";
import { DAY_MS } from "../../http/timestamp.ts";
import type { DayUsage } from "./report.ts";

export type DayNote =
  /** A brownout. Its start is unknown if the policy no longer lists it. */
  | { readonly kind: "brownout"; readonly start?: number }
  /** Part of the day is not on record, so its count may be too low. */
  | { readonly kind: "not on record" };

/** Lists the notes on a day. */
export function notesOf(
  { day, byPhase, isOnRecord }: DayUsage,
  { brownouts = [] }: Partial<Policy> = {},
): DayNote[] {
  const dayStart = Date.parse(day);
  const known = brownouts
    .filter(({ start, end }) => start < dayStart + DAY_MS && dayStart < end)
    .map(({ start }): DayNote => ({ kind: "brownout", start }));
  const unknown: DayNote[] = byPhase.brownout === undefined ? [] : [{ kind: "brownout" }];
  return [...(known.length > 0 ? known : unknown), ...(isOnRecord ? [] : [NOT_ON_RECORD])];
}

const NOT_ON_RECORD: DayNote = { kind: "not on record" };
