/** The verdict on removing deprecated routes. */

import {
  type Doubt,
  doubtsOf,
  type Evidence,
  type TrustableDoubt,
  trustableDoubts,
} from "./doubts.ts";
import type { HiddenCalls } from "./hidden_calls.ts";
import type { SilentClient } from "./rhythms.ts";
import { DAY_MS, dayOf } from "../../http/timestamp.ts";

/** Whether the routes that the verdict names can be removed. */
export type Verdict =
  /** No more calls than allowed, by the record and, where needed, the operator's word. */
  | {
    readonly state: "clear";
    /** The doubts in the period that the operator's word settles. */
    readonly trusted: readonly TrustableDoubt[];
  }
  | { readonly state: "called" }
  | UnknownVerdict;

/** No more calls than allowed were counted, but calls may be missing. */
export interface UnknownVerdict {
  readonly state: "unknown";
  readonly doubts: readonly Doubt[];
  readonly hidden: readonly HiddenCalls[];
  /** The doubts that would remain if the operator could vouch for the others. */
  readonly left: readonly Doubt[];
  /** The clients whose rhythm reaches back from before the period to a doubt. */
  readonly uncertain: readonly SilentClient[];
}

/** A route, and the clients that have called it, but not in the period. */
interface AskedRoute {
  readonly route: string;
  readonly silent: readonly SilentClient[];
}

/** Returns the verdict on a period with no more calls than allowed; unknown without routes. */
export function judge(
  evidence: Evidence,
  { routes, from, trustStops, hidden }: {
    readonly routes: readonly AskedRoute[];
    /** The start of the period. It ends at the instant of the verdict. */
    readonly from: number;
    /** Whether the operator vouches for all stops, and for what is like them. */
    readonly trustStops: boolean;
    readonly hidden: readonly HiddenCalls[];
  },
): Verdict {
  const rare = routes.map(({ route, silent }) => ({
    route,
    silent: silent.filter(({ since }) => since < from),
  }));
  /** Returns the doubts in the period, and those before it to which the rhythm of a client reaches. */
  const asked = <Each extends { readonly until: number }>(
    find: (routes: readonly string[]) => readonly Each[],
  ): Each[] => {
    const found = find(routes.map(({ route }) => route)).filter(({ until }) => until > from);
    const older = rare.flatMap(({ route, silent }) => {
      const since = Math.min(...silent.map(({ since }) => since));
      return since === Infinity ? [] : find([route])
        .filter(({ until }) => until > since && until <= from);
    });
    // What concerns several routes is listed once.
    return [...new Map([...found, ...older].map((each) => [JSON.stringify(each), each])).values()];
  };
  const byEnd = (a: Doubt, b: Doubt) => a.until - b.until;
  const doubts = asked((names) => doubtsOf(evidence, names, trustStops)).sort(byEnd);
  if (doubts.length + hidden.length === 0 && routes.length > 0) {
    return { state: "clear", trusted: asked((names) => trustableDoubts(evidence, names)) };
  }
  const left = asked((names) => doubtsOf(evidence, names, true)).sort(byEnd);
  const uncertain = rare.flatMap(({ route, silent }) => {
    const last = Math.max(...doubtsOf(evidence, [route], trustStops).map(({ until }) => until));
    return silent.filter(({ since }) => last > since);
  });
  return { state: "unknown", doubts, hidden, left, uncertain };
}

/** The lengths of a report's period and of the record, in whole UTC days. */
export interface PeriodLengths {
  /** The number of whole UTC days in the period. */
  readonly days: number;
  /** The number of whole days that servers retain, if known. */
  readonly retainDays?: number | undefined;
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
  { days, retainDays }: PeriodLengths,
): string | undefined {
  if ((retainDays ?? days) < days || doubts.some(({ isOpen }) => isOpen)) return undefined;
  const last = doubts.at(-1); // the one that ends last
  if (last === undefined) return undefined;
  const silences = uncertain.filter(({ since }) => last.until > since)
    .map(({ silence }) => Math.min(silence, retainDays ?? silence));
  return dayOf((Math.ceil(last.until / DAY_MS) + Math.max(days, ...silences)) * DAY_MS);
}
