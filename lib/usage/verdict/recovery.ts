/** The day on which an unknown verdict can be clear, if nobody gives their word. */

import { DAY_MS, dayOf } from "../record/day.ts";
import type { Doubt } from "./doubts.ts";
import type { Verdict } from "./verdict.ts";

/** The lengths of a report's period and of the record, in whole UTC days. */
export interface PeriodLengths {
  /** The number of whole UTC days in the period. */
  readonly days: number;
  /** The number of whole days that servers retain, if known. */
  readonly usageDays?: number | undefined;
}

/** Returns the first day on which a verdict can be clear, if it is unknown and that can be known. */
export function recoveryOf(verdict: Verdict, lengths: PeriodLengths): string | undefined {
  return verdict.state !== "unknown" || verdict.hidden.length > 0
    ? undefined
    : recoveryFrom(verdict.doubts, lengths);
}

/**
 * Returns the first day on which a verdict can be clear without anybody's word; `undefined` if it
 * cannot be known.
 */
export function recoveryFrom(
  doubts: readonly Doubt[],
  { days, usageDays }: PeriodLengths,
): string | undefined {
  if ((usageDays ?? days) < days || doubts.some(({ isOpen }) => isOpen)) return undefined;
  const last = doubts.at(-1); // the one that ends last
  return last && dayOf((Math.ceil(last.until / DAY_MS) + days) * DAY_MS);
}
