/** The verdict on removing deprecated routes. */

import {
  type Doubt,
  doubtsOf,
  type Evidence,
  type TrustableDoubt,
  trustableDoubts,
} from "./doubts.ts";
import type { HiddenCalls } from "./hidden_calls.ts";

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
}

/** Returns the verdict on a period with no more calls than allowed; unknown without routes. */
export function judge(
  evidence: Evidence,
  { routes, from, trustStops, hidden }: {
    readonly routes: readonly string[];
    /** The start of the period. It ends at the instant of the verdict. */
    readonly from: number;
    /** Whether the operator vouches for all stops, and for what is like them. */
    readonly trustStops: boolean;
    readonly hidden: readonly HiddenCalls[];
  },
): Verdict {
  const isInPeriod = ({ until }: { readonly until: number }) => until > from;
  const doubts = doubtsOf(evidence, routes, trustStops).filter(isInPeriod);
  if (doubts.length + hidden.length === 0 && routes.length > 0) {
    const trusted = trustableDoubts(evidence, routes).filter(isInPeriod);
    return { state: "clear", trusted };
  }
  const left = doubtsOf(evidence, routes, true).filter(isInPeriod);
  return { state: "unknown", doubts, hidden, left };
}
