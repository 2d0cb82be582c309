/** The day on which an unknown verdict can be clear, if nobody gives their word. */

import { DAY_MS, dayOf } from "../record/day.ts";
import type { Doubt } from "./doubts.ts";
import type { UnknownVerdict, Verdict } from "./verdict.ts";

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
    : recoveryFrom(verdict.doubts, verdict, lengths);
}

/**
 * Returns the first day on which a verdict can be clear without anybody's word; `undefined` if it
 * cannot be known.
 */
export function recoveryFrom(
  doubts: readonly Doubt[],
  { uncertain }: Pick<UnknownVerdict, "uncertain">,
  { days, usageDays }: PeriodLengths,
): string | undefined {
  if ((usageDays ?? days) < days || doubts.some(({ isOpen }) => isOpen)) return undefined;
  const last = doubts.at(-1); // the one that ends last
  if (last === undefined) return undefined;
  const silences = uncertain.filter(({ since }) => last.until > since)
    .map(({ silence }) => Math.min(silence, usageDays ?? silence));
  return dayOf((Math.ceil(last.until / DAY_MS) + Math.max(days, ...silences)) * DAY_MS);
}
