/** The verdict on removing deprecated routes. */

import type { Interval } from "../../lifecycle/instant.ts";
import type { Session } from "../record/records.ts";
import { type Doubt, doubtsOf, type Evidence, stopsIn, type Words } from "./doubts.ts";
import type { HiddenCalls } from "./hidden_calls.ts";
import { endOf, isOpen, isSilent } from "./session_state.ts";

/** Whether the routes that the verdict names can be removed. */
export type Verdict =
  /** No more calls than allowed, by the record and, where needed, the operator's word. */
  | { readonly state: "clear"; readonly trusted: Trusted }
  | { readonly state: "called" }
  | UnknownVerdict;

/** No more calls than allowed were counted, but calls may be missing. */
export interface UnknownVerdict {
  readonly state: "unknown";
  readonly doubts: readonly Doubt[];
  readonly hidden: readonly HiddenCalls[];
  readonly remedy: Remedy;
}

/** The operator's words that a clear verdict rests on. */
export interface Trusted {
  /** During these stops, nothing else served, nothing was restored, and no clock was wrong. */
  readonly stops: readonly Interval[];
  /** The processes of these sessions had ended by the times given. */
  readonly gone: readonly Pick<Session, "id" | "process" | "reported" | "endedBy">[];
}

/** The operator's words that would help, if they are true. */
export interface Remedy {
  /** Silent sessions whose processes may have ended within a minute of their last report. */
  readonly gone: readonly Pick<Session, "id" | "process">[];
  readonly trustStops: boolean;
  /** The doubts that would remain. */
  readonly left: readonly Doubt[];
}

/** Returns the verdict on a period with no more calls than allowed; unknown without routes. */
export function judge(
  evidence: Evidence,
  { routes, from, trustStops, hidden }: Pick<Words, "trustStops"> & {
    readonly routes: readonly string[];
    /** The start of the period. It ends at the instant of the verdict. */
    readonly from: number;
    readonly hidden: readonly HiddenCalls[];
  },
): Verdict {
  const doubtsWith = (words: Words) =>
    doubtsOf(evidence, routes, words).filter(({ until }) => until > from);
  const doubts = doubtsWith({ trustStops });
  if (doubts.length + hidden.length === 0 && routes.length > 0) {
    const { sessions } = evidence;
    const gone = sessions.filter(({ ended }) => ended === "gone")
      .map(({ id, process, reported, endedBy }) => ({ id, process, reported, endedBy }));
    const stops = stopsIn(evidence, []).filter(({ end }) => end > from);
    return { state: "clear", trusted: { stops, gone } };
  }
  const gone = doubts.flatMap((doubt) =>
    doubt.reason === "silent" && isSilent(doubt, evidence.time)
      ? [{ id: doubt.session, process: doubt.process }]
      : []
  );
  const ids = gone.map(({ id }) => id);
  const left = doubtsWith({ trustStops: true, gone: ids });
  const isStopped = stopsIn(evidence, ids).some(({ end }) => end > from);
  const remedy = { gone, trustStops: trustStops || isStopped, left };
  return { state: "unknown", doubts, hidden, remedy };
}

/**
 * Returns whether processes that count a route in a period say that they may serve before they are
 * registered. Others like them may have ended without being on record.
 */
export function mayBeServedUnregistered(
  { sessions }: Pick<Evidence, "sessions">,
  route: string,
  from: number,
): boolean {
  return sessions.some((session) =>
    session.mayStartUnregistered === true && Object.hasOwn(session.policies, route) &&
    (isOpen(session) || endOf(session) >= from)
  );
}
