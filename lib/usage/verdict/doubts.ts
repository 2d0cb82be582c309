/** The evidence of how complete a record is, and the doubts that it leaves. */

import type { Interval } from "../../lifecycle/instant.ts";
import {
  hasMounted,
  type Intent,
  isOpen,
  isRunning,
  isSettled,
  lagOf,
  LEASE_MS,
  type LedgerTime,
  MOUNTING_MS,
  type ProcessIdentity,
  type Session,
  SHORTEST_GAP_MS,
} from "../record/records.ts";

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
    /** No session has counted these routes since `start`, or ever, and none does now. */
    | {
      readonly reason: "no server";
      readonly routes: readonly string[];
      readonly start: number | undefined;
    }
    /** A running session may have calls to the route that are not on record yet. */
    | NamedSession & { readonly reason: "in flight"; readonly route: string }
    /** A session did not count the route, which it has, but did not mount, or does not have. */
    | NamedSession & {
      readonly reason: "not counted";
      readonly route: string;
      readonly isUnmounted: boolean;
    }
    /** The database's clock is a minute or more behind the ledger's time, `then`. */
    | { readonly reason: "ahead"; readonly then: number }
    | TrustableDoubt
  );

/** A doubt that the operator's word can settle. */
export type TrustableDoubt =
  & { readonly until: number; readonly isOpen: boolean }
  & (
    /** There was no session from `start` to `end`. */
    | { readonly reason: "stop"; readonly start: number; readonly end: number }
    /** The database was restored or failed over after `start`, and by `end`. */
    | { readonly reason: "restored"; readonly start: number; readonly end: number }
    /** A process ended, or was cut off, while it may have answered calls to the route after `start`. */
    | Partial<NamedSession> & {
      readonly reason: "intent";
      readonly route: string;
      readonly start: number;
    }
    /** A process may have served calls that the ledger did not take, and ended without a word. */
    | NamedSession & { readonly reason: "unrecorded" }
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
  /** All intents. */
  readonly intents: readonly Intent[];
  /** The start of the record; `undefined` if there never was a session. */
  readonly started: number | undefined;
  /** The instant of the verdict, by the ledger's time, in milliseconds since the epoch. */
  readonly judgedAt: number;
  /**
   * What running servers have recorded since this instant is taken for complete, in milliseconds
   * since the epoch. For a gate it is the instant of the verdict.
   */
  readonly settledSince: number;
  /** The times of the ledger, read after the sessions. */
  readonly time: LedgerTime;
  /** The database's timeline, read after everything else. */
  readonly timeline: string;
}

/** Returns since when the record is complete for some routes; `undefined` if it is not. */
export function completeSince(
  evidence: Evidence,
  routes: readonly string[],
  trustStops: boolean,
): number | undefined {
  const since = Math.max(...doubtsOf(evidence, routes, trustStops).map(({ until }) => until));
  return since < evidence.judgedAt ? since : undefined;
}

/**
 * Returns all doubts about the record before the instant of the verdict, in the order they end.
 *
 * @param trustStops Whether the operator vouches for all stops, and for what is like them.
 */
export function doubtsOf(
  evidence: Evidence,
  routes: readonly string[],
  trustStops: boolean,
): Doubt[] {
  const { started, judgedAt, time } = evidence;
  const doubts: Doubt[] = [{
    reason: "started",
    until: started ?? judgedAt,
    isOpen: started === undefined,
  }];
  if (lagOf(time) >= SHORTEST_GAP_MS) {
    doubts.push({ reason: "ahead", until: judgedAt, isOpen: true, then: time.now });
  }
  doubts.push(
    ...unserved(evidence, routes),
    ...inFlight(evidence, routes),
    ...uncounted(evidence, routes),
  );
  if (!trustStops) doubts.push(...trustableDoubts(evidence, routes));
  return doubts.sort((a, b) => a.until - b.until);
}

/** Returns the doubts that the operator's word can settle. */
export function trustableDoubts(
  evidence: Evidence,
  routes: readonly string[],
): TrustableDoubt[] {
  return [
    ...stopsIn(evidence).map(({ start, end }): TrustableDoubt => {
      // Intents from before the record's start are not on record any more.
      const until = start === evidence.started ? end + LEASE_MS : end;
      return { reason: "stop", start, end, until, isOpen: false };
    }),
    ...restoresIn(evidence).map(({ start, end }): TrustableDoubt => {
      // Intents that were lost may be in use until then.
      const until = end + LEASE_MS;
      return { reason: "restored", start, end, until, isOpen: end === evidence.judgedAt };
    }),
    ...abandoned(evidence, routes),
    ...unrecorded(evidence, routes),
  ];
}

/** Returns each minute or more without a session since the record started, except one until now. */
function stopsIn(
  { sessions, started, judgedAt }: Pick<Evidence, "sessions" | "started" | "judgedAt">,
): Interval[] {
  const stops: Interval[] = [];
  let covered = Math.min(started ?? judgedAt, judgedAt);
  for (const { began, reported } of sessions.filter(hasMounted)) {
    const start = Math.min(began, judgedAt);
    if (start - covered >= SHORTEST_GAP_MS) stops.push({ start: covered, end: start });
    covered = Math.max(covered, reported);
  }
  return stops;
}

/** Returns the doubt on routes that no server has counted for a minute or more, if there are any. */
function unserved({ sessions, started, judgedAt }: Evidence, routes: readonly string[]): Doubt[] {
  if (started === undefined) return []; // a doubt of its own
  const counts = (route: string) => ({ policies }: Session) => Object.hasOwn(policies, route);
  const recent = sessions.filter(({ reported }) => judgedAt - reported < SHORTEST_GAP_MS);
  // Where a running server does not count a route, that is a doubt of its own.
  const without = routes.filter((route) => !recent.some(counts(route)))
    .filter((route) => !recent.some((session) => isOpen(session) && leavesOut(session, route)));
  if (without.length === 0) return [];
  const counting = sessions.filter((session) => without.some((route) => counts(route)(session)));
  const start = counting.length === 0
    ? undefined
    : Math.max(...counting.map(({ reported }) => reported));
  return [{ reason: "no server", routes: without, start, until: judgedAt, isOpen: true }];
}

/**
 * Returns the times in which the database was restored or failed over: each from the last heartbeat
 * on one timeline to the first session on the next.
 */
function restoresIn(
  { sessions, timeline, judgedAt }: Pick<Evidence, "sessions" | "timeline" | "judgedAt">,
): Interval[] {
  const told = sessions.filter((session) => session.timeline !== "");
  const restores = told.flatMap(({ timeline, began: end }, index): Interval[] => {
    const before = told.slice(0, index);
    if (timeline === (before.at(-1)?.timeline ?? timeline)) return [];
    return [{ start: Math.max(...before.map(({ reported }) => Math.min(reported, end))), end }];
  });
  const latest = told.toSorted((a, b) => a.reported - b.reported).at(-1);
  if (timeline === "" || timeline === (latest?.timeline ?? timeline)) return restores;
  return [...restores, { start: latest?.reported ?? judgedAt, end: judgedAt }];
}

/** Returns the doubts on calls that running servers have yet to record. */
function inFlight(
  { sessions, intents, judgedAt, settledSince }: Evidence,
  routes: readonly string[],
): Doubt[] {
  return intents.flatMap(({ route, session: id, settled }): Doubt[] => {
    const session = sessions.find((session) => session.id === id);
    const isOver = session === undefined || !isRunning(session, judgedAt);
    if (isOver || !routes.includes(route) || isSettled({ settled }, settledSince)) return [];
    const { process } = session;
    return [{ reason: "in flight", session: id, process, route, until: judgedAt, isOpen: true }];
  });
}

/** Returns the doubts on calls that processes may have answered after their last heartbeat. */
function abandoned(evidence: Evidence, routes: readonly string[]): TrustableDoubt[] {
  const { sessions, intents, judgedAt } = evidence;
  const stops = stopsIn(evidence);
  return intents.flatMap((intent): TrustableDoubt[] => {
    const { route, settled, since } = intent;
    const session = sessions.find(({ id }) => id === intent.session);
    const isOver = session === undefined || !isRunning(session, judgedAt);
    if (!isOver || !routes.includes(route)) return [];
    const name = session && { session: session.id, process: session.process };
    const until = endOf(intent, stops);
    return [{ reason: "intent", ...name, route, start: settled ?? since, until, isOpen: false }];
  });
}

/**
 * Returns when an intent ends, by the ledger's time. Its process measures the lease by clocks of its
 * own, so the time in which nobody counted is left out: the database's clock may have jumped then.
 */
function endOf({ since, until }: Intent, stops: readonly Interval[]): number {
  return stops.reduce(
    (end, stop) =>
      stop.start < end && stop.end > since ? end + stop.end - Math.max(stop.start, since) : end,
    until,
  );
}

/** Returns the last doubt on each route that a session did not count. */
function uncounted({ sessions, judgedAt }: Evidence, routes: readonly string[]): Doubt[] {
  const doubts = new Map<string, Doubt>();
  for (const session of sessions) {
    const { id, process, reported } = session;
    const isStill = isRunning(session, judgedAt);
    const until = isStill ? judgedAt : Math.min(reported, judgedAt);
    for (const route of routes.filter((route) => leavesOut(session, route))) {
      if ((doubts.get(route)?.until ?? 0) > until) continue;
      const isUnmounted = Object.hasOwn(session.unmounted ?? {}, route);
      const doubt = { session: id, process, route, until, isOpen: isStill, isUnmounted };
      doubts.set(route, { reason: "not counted", ...doubt });
    }
  }
  return [...doubts.values()];
}

/** Returns whether a session has counted, but not a route. */
function leavesOut(session: Session, route: string): boolean {
  const { policies, unmounted = {}, sequence, began, reported } = session;
  // The ledger's time may stand still for a whole session, but its sequence number advances.
  if (sequence === 0 || Object.hasOwn(policies, route)) return false;
  if (!Object.hasOwn(unmounted, route)) return true;
  // One that mounts none serves none.
  return hasMounted(session) && reported - began >= MOUNTING_MS;
}

/**
 * Returns the doubts on sessions that may have served calls which the ledger did not take, and ended
 * without saying that they stopped. One that its process has continued is none.
 */
function unrecorded(
  { sessions, judgedAt }: Evidence,
  routes: readonly string[],
): TrustableDoubt[] {
  const isSame = (a: ProcessIdentity, b: ProcessIdentity) =>
    a.machine === b.machine && a.pid === b.pid && a.started === b.started;
  return sessions.filter((session, index) =>
    session.mayServeUnrecorded === true && session.ended !== "stopped" &&
    !isRunning(session, judgedAt) &&
    routes.some((route) => Object.hasOwn(session.policies, route)) &&
    !sessions.slice(index + 1).some(({ process }) => isSame(process, session.process))
  ).map(({ id, process, reported }) => {
    return { reason: "unrecorded", session: id, process, until: reported, isOpen: false };
  });
}
