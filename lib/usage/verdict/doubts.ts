/** The evidence of how complete a record is, and the doubts that it leaves. */

import type { Interval } from "../../lifecycle/instant.ts";
import {
  lagOf,
  type LedgerTime,
  MINUTE_MS,
  type ProcessIdentity,
  type Session,
} from "../record/records.ts";
import { endOf, isAwaited, isOpen } from "./session_state.ts";

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

/** Names the session of a doubt. */
interface NamedSession {
  /** Its id. */
  readonly session: string;
  readonly process: ProcessIdentity;
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
export interface Words {
  /** During every stop, nothing else served, nothing was restored, and no clock was wrong. */
  readonly trustStops: boolean;
  /** The ids of sessions whose processes ended at their last report, besides those on record. */
  readonly gone?: readonly string[];
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

/** Returns all doubts about the record before the instant of the verdict, in the order they end. */
export function doubtsOf(evidence: Evidence, routes: readonly string[], words: Words): Doubt[] {
  const { sessions, started, judgedAt, time } = evidence;
  const { trustStops, gone = [] } = words;
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
    if (isOpen(session, gone) && isAwaited(session, judgedAt)) {
      doubts.push({ reason: "silent", ...name, reported, until: judgedAt, isOpen: true });
    }
    const end = endOf(session);
    const isCutOff = endedBy !== undefined && end > reported;
    if (isCutOff && routes.some((route) => Object.hasOwn(policies, route))) {
      doubts.push({ reason: "cut off", ...name, reported, endedBy, until: end, isOpen: false });
    }
    const until = isOpen(session, gone) ? judgedAt : isCutOff ? end : Math.min(reported, judgedAt);
    // The ledger's time may stand still for a whole session, but its sequence number advances.
    for (const route of sequence > 0 || isCutOff ? routes : []) {
      if (Object.hasOwn(policies, route) || (uncounted.get(route)?.until ?? 0) > until) continue;
      const reason = "not counted";
      uncounted.set(route, { reason, ...name, route, until, isOpen: isOpen(session, gone) });
    }
  }
  doubts.push(...uncounted.values());
  return doubts.sort((a, b) => a.until - b.until);
}

/** Returns each minute or more without a session since the record started. */
export function stopsIn(
  { sessions, started, judgedAt }: Evidence,
  gone: readonly string[],
): Interval[] {
  const stops: Interval[] = [];
  let covered = started ?? judgedAt;
  const cover = (start: number, end: number) => {
    if (start - covered >= MINUTE_MS) stops.push({ start: covered, end: start });
    covered = Math.max(covered, end);
  };
  for (const session of sessions) {
    cover(Math.min(session.began, judgedAt), isOpen(session, gone) ? judgedAt : endOf(session));
  }
  cover(judgedAt, judgedAt);
  return stops;
}
