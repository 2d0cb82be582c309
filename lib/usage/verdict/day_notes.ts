/** What qualifies the calls of a day: brownouts, and an incomplete record. */

import type { Policy } from "../../lifecycle/policy.ts";
import { DAY_MS } from "../../http/timestamp.ts";
import type { DayUsage } from "./report.ts";

export type DayNote =
  /** A brownout. Its start is unknown if the policy no longer lists it. */
  | { readonly kind: "brownout"; readonly start?: number }
  /** The record of the day is incomplete, so its count may be too low. */
  | { readonly kind: "incomplete" };

/** Lists the notes on a day. */
export function notesOf(
  { day, byPhase, isWhole }: DayUsage,
  { brownouts = [] }: Partial<Policy> = {},
): DayNote[] {
  const dayStart = Date.parse(day);
  const known = brownouts
    .filter(({ start, end }) => start < dayStart + DAY_MS && dayStart < end)
    .map(({ start }): DayNote => ({ kind: "brownout", start }));
  const unknown: DayNote[] = byPhase.brownout === undefined ? [] : [{ kind: "brownout" }];
  return [...(known.length > 0 ? known : unknown), ...(isWhole ? [] : [INCOMPLETE])];
}

const INCOMPLETE: DayNote = { kind: "incomplete" };
