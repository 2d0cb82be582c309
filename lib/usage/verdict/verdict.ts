/** The verdict on removing deprecated routes, and the evidence that the record is complete. */

import type { Interval } from "../../lifecycle/instant.ts";
import {
  lagOf,
  type LedgerTime,
  MINUTE_MS,
  type ProcessIdentity,
  type Session,
} from "../record/records.ts";

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

/** Names the session of a doubt. */
interface NamedSession {
  /** Its id. */
  readonly session: string;
  readonly process: ProcessIdentity;
}

/** Why calls before an instant may not be on record. */
export type Doubt =
  & {
    /** The instant, in milliseconds since the epoch. */
    readonly until: number;
    /** Whether the instant moves on until something is done. */
    readonly isOpen: boolean;
  }
  & (
    /** The record starts at the instant, or has not started. */
    | { readonly reason: "started" }
    /** There was no session from `start` to the instant. */
    | { readonly reason: "stop"; readonly start: number }
    /** A session has not reported since `reported`. */
    | NamedSession & { readonly reason: "silent"; readonly reported: number }
    /** A session's process may have run on after `reported`, until `endedBy`. */
    | NamedSession & {
      readonly reason: "cut off";
      readonly reported: number;
      readonly endedBy: number;
    }
    /** A session did not count the route. */
    | NamedSession & { readonly reason: "not counted"; readonly route: string }
    /** The database's clock is a minute or more behind the ledger's time, `then`. */
    | { readonly reason: "ahead"; readonly then: number }
  );

/** Why calls to a route may not reach the servers. */
export interface HiddenCalls {
  readonly route: string;
  readonly reason: string;
}

/** The findings of a probe. */
export interface ProbeResult {
  /** The URL that the probe went through. */
  readonly url: string;
  /** The routes for which every request was counted. */
  readonly probed: readonly string[];
  readonly hidden: readonly HiddenCalls[];
}

/** The operator's words that would help, if they are true. */
export interface Remedy {
  /** Silent sessions whose processes may have ended within a minute of their last report. */
  readonly gone: readonly Pick<Session, "id" | "process">[];
  readonly trustStops: boolean;
  /** The doubts that would remain. */
  readonly left: readonly Doubt[];
}

/** The evidence of how complete the record is. */
export interface Evidence {
  /** All sessions, in the order in which they began. */
  readonly sessions: readonly Session[];
  /** The start of the record; `undefined` if there never was a session. */
  readonly started: number | undefined;
  /** The instant of the verdict, by the ledger's time, in milliseconds since the epoch. */
  readonly judgedAt: number;
  /** The times of the ledger, read after the sessions. */
  readonly time: LedgerTime;
}

/** The operator's words. */
interface Words {
  /** During every stop, nothing else served, nothing was restored, and no clock was wrong. */
  readonly trustStops: boolean;
  /** The ids of sessions whose processes ended at their last report, besides those on record. */
  readonly gone?: readonly string[];
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

/** Returns since when the record is complete for some routes; `undefined` if it is not. */
export function completeSince(
  evidence: Evidence,
  routes: readonly string[],
  words: Words,
): number | undefined {
  const since = Math.max(...doubtsOf(evidence, routes, words).map(({ until }) => until));
  return since < evidence.judgedAt ? since : undefined;
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
    (session.ended === undefined || endOf(session) >= from)
  );
}

/** Returns whether a session has been silent so long that its process can be declared gone. */
export function isSilent({ reported }: Pick<Session, "reported">, { now }: LedgerTime): boolean {
  return now - reported >= MINUTE_MS;
}

/**
 * Returns when a session that is not open had ended, by the ledger's time: at its last report, or
 * later if its process may have run on for a minute or more.
 *
 * Any clock may be wrong at times, so the time that passed until then is the longer one by two: the
 * ledger's time and the machine's clock. If the ledger's time was ahead when the operator said so,
 * it may have been as far ahead when the process ended.
 */
export function endOf(
  session: Pick<Session, "reported" | "clock" | "restarted" | "endedBy" | "lead">,
): number {
  const { reported, clock, restarted, endedBy, lead = 0 } = session;
  if (endedBy === undefined) return reported;
  const byMachine = endedBy - clock;
  if (restarted !== undefined && byMachine <= 0) return reported; // nothing before it counts
  const since = restarted ?? reported;
  const passed = Math.max(byMachine, endedBy + lead - since);
  return passed < MINUTE_MS && restarted === undefined ? reported : since + passed;
}

/**
 * Returns whether an open session has yet to report the calls before the instant of the verdict.
 * The beginning of a session is no report.
 */
export function isAwaited({ began, reported, ended }: Session, judgedAt: number): boolean {
  return ended === undefined && (reported <= judgedAt || reported === began);
}

/** Returns all doubts about the record before the instant of the verdict, in the order they end. */
function doubtsOf(evidence: Evidence, routes: readonly string[], words: Words): Doubt[] {
  const { sessions, started, judgedAt, time } = evidence;
  const { trustStops, gone = [] } = words;
  const isOpen = ({ id, ended }: Session) => ended === undefined && !gone.includes(id);
  const doubts: Doubt[] = [{
    reason: "started",
    until: started ?? judgedAt,
    isOpen: started === undefined,
  }];
  if (lagOf(time) >= MINUTE_MS) {
    doubts.push({ reason: "ahead", until: judgedAt, isOpen: true, then: time.now });
  }
  for (const { start, end } of trustStops ? [] : stopsIn(evidence, gone)) {
    doubts.push({ reason: "stop", start, until: end, isOpen: end === judgedAt });
  }
  const uncounted = new Map<string, Doubt>(); // the last doubt of each route
  for (const session of sessions) {
    const { id, process, policies, reported, sequence, endedBy } = session;
    const name = { session: id, process };
    if (isOpen(session) && isAwaited(session, judgedAt)) {
      doubts.push({ reason: "silent", ...name, reported, until: judgedAt, isOpen: true });
    }
    const end = endOf(session);
    const isCutOff = endedBy !== undefined && end > reported;
    if (isCutOff && routes.some((route) => Object.hasOwn(policies, route))) {
      doubts.push({ reason: "cut off", ...name, reported, endedBy, until: end, isOpen: false });
    }
    const until = isOpen(session) ? judgedAt : isCutOff ? end : Math.min(reported, judgedAt);
    // The ledger's time may stand still for a whole session, but its sequence number advances.
    for (const route of sequence > 0 || isCutOff ? routes : []) {
      if (Object.hasOwn(policies, route) || (uncounted.get(route)?.until ?? 0) > until) continue;
      const reason = "not counted";
      uncounted.set(route, { reason, ...name, route, until, isOpen: isOpen(session) });
    }
  }
  doubts.push(...uncounted.values());
  return doubts.sort((a, b) => a.until - b.until);
}

/** Returns each minute or more without a session since the record started. */
function stopsIn({ sessions, started, judgedAt }: Evidence, gone: readonly string[]): Interval[] {
  const stops: Interval[] = [];
  let covered = started ?? judgedAt;
  const cover = (start: number, end: number) => {
    if (start - covered >= MINUTE_MS) stops.push({ start: covered, end: start });
    covered = Math.max(covered, end);
  };
  for (const session of sessions) {
    const { id, began, ended } = session;
    const isOpen = ended === undefined && !gone.includes(id);
    cover(Math.min(began, judgedAt), isOpen ? judgedAt : endOf(session));
  }
  cover(judgedAt, judgedAt);
  return stops;
}
