/** The records of a ledger: calls to deprecated routes, and the processes that counted them. */

import { isPrintable, quoted } from "../../input/printable.ts";
import type { Phase, RoutePolicies } from "../../lifecycle/policy.ts";
import { DAY_MS } from "../../http/timestamp.ts";

/**
 * The effect of a route's removal on calls: "breaking" if it breaks them (`isBreaking()` decides
 * that); "none" otherwise, and for probes.
 */
export type Impact = typeof IMPACTS[number];

/** Every {@linkcode Impact}. */
export const IMPACTS = ["breaking", "none"] as const;

/** Calls that are counted together. */
export interface UsageCount {
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  /** The start of the brownout, e.g. `2027-06-10T09:00:00Z`; empty in any other phase. */
  readonly brownout: string;
  /** The class of the status, e.g. `2xx`; of requests that are no calls, a 4xx itself, e.g. `404`. */
  readonly status: string;
  readonly impact: Impact;
  /** The name of the client, e.g. `app Overcast`. */
  readonly client: string;
  /** The release of an app, e.g. `3.0.1`; for other clients, the app, e.g. `okhttp`; or empty. */
  readonly release: string;
  readonly calls: number;
}

/** Calls on record, by the day on which they were recorded. */
export interface UsageRow extends UsageCount {
  /** UTC, e.g. `2027-01-31`. */
  readonly day: string;
  /** When the last call was recorded, in milliseconds since the epoch. */
  readonly last: number;
}

/** The days on record on which a client called a route. */
export interface ClientHistory {
  readonly route: string;
  readonly client: string;
  /** The calls on these days. */
  readonly calls: number;
  /** The number of these days. */
  readonly days: number;
  /** The first of them, UTC, e.g. `2027-01-31`. */
  readonly first: string;
  /** The last of them. */
  readonly last: string;
  /** The calls on the last of them. */
  readonly lastCalls: number;
  /** The longest pause between two of them, in days; `undefined` if there is one day only. */
  readonly pause: number | undefined;
}

const COUNT_KEY = [
  "route",
  "method",
  "phase",
  "brownout",
  "status",
  "impact",
  "client",
  "release",
] as const;

/** The columns that distinguish rows. */
export const USAGE_KEY = ["day", ...COUNT_KEY] as const;

/** Returns the key of counts, as a text to sort by. */
export function keyOf(count: UsageCount): string {
  return COUNT_KEY.map((column) => count[column]).join("\0");
}

/**
 * Checks that every route has a name that can be recorded, read back and printed as it is.
 *
 * @throws {TypeError} If a name has control characters, lone surrogates or the like.
 */
export function requireRouteNames(policies: RoutePolicies): void {
  const wrong = Object.keys(policies).find((route) => !isPrintable(route));
  if (wrong === undefined) return;
  throw new TypeError(
    `routes: ${quoted(wrong)} has characters that cannot be printed, ` +
      "expected names in well-formed Unicode without control characters",
  );
}

/** The ways in which a session ends: see {@linkcode Session}. */
export const ENDS = ["stopped", "lapsed"] as const;

/** A process, as people and supervisors know it. */
export interface ProcessIdentity {
  /** The host name of the machine; `undefined` if the process may not read it. */
  readonly machine: string | undefined;
  readonly pid: number;
  /** When the process started, by the machine's clock, in milliseconds since the epoch. */
  readonly started: number;
}

/**
 * The registration of one process. Times are in milliseconds since the epoch, by the ledger's time.
 */
export interface Session {
  readonly id: string;
  readonly process: ProcessIdentity;
  /** The policies of the routes that are mounted. The process announces and counts these only. */
  readonly policies: RoutePolicies;
  /** The policies of the routes that the process has, but did not mount. */
  readonly unmounted?: RoutePolicies | undefined;
  /** Whether the process answers calls that the ledger does not take, and so may leave some out. */
  readonly mayServeUnrecorded?: boolean | undefined;
  /** The URL at which clients reach the application, if it is known. */
  readonly publicUrl?: string | undefined;
  /** The URL at which owners of clients reach the operator, if there is one. */
  readonly contact?: string | undefined;
  /** The number of whole days for which the process retains counts. */
  readonly retainDays: number;
  readonly began: number;
  /** The time of its last heartbeat. The process was counting from `began` until then. */
  readonly reported: number;
  /** The database's {@linkcode Database.timeline} since the session began. */
  readonly timeline: string;
  /**
   * The number of transactions that have extended the session, and one more if it continues an
   * earlier session of its process.
   */
  readonly sequence: number;
  /**
   * How the session ended, if it did: the process stopped, or the session lapsed, because the process
   * did not live through the time that followed, or the database changed. A session that ended is
   * never extended again.
   */
  readonly ended?: typeof ENDS[number] | undefined;
}

/** The time for which an intent holds unless it is renewed, in milliseconds. */
export const LEASE_MS = DAY_MS;

/**
 * The statement of a process that it may be answering calls to a route. It is in the ledger before
 * any of them is answered, and is deleted once all of them are on record. So a process that falls
 * silent without an intent has answered nothing that is not on record. Times are in milliseconds
 * since the epoch, by the ledger's time.
 */
export interface Intent {
  readonly id: string;
  /** The id of the process's session. */
  readonly session: string;
  readonly route: string;
  /** When it was written. */
  readonly since: number;
  /** {@linkcode LEASE_MS} after it was written or last renewed. Later calls have another intent. */
  readonly until: number;
  /**
   * Every call that arrived before this instant is on record; `undefined` before the first
   * heartbeat at which no call was in flight.
   */
  readonly settled: number | undefined;
}

/** What a heartbeat says of the intents of its session. Each list has ids. */
export interface HeartbeatIntents {
  /** When it was written, by the ledger's time read before its counts were taken. */
  readonly at: number;
  /** The session's sequence number when it was written. */
  readonly sequence: number;
  /**
   * Those that the process holds or has asked for. Any other that was written under an earlier
   * sequence number is deleted; by the heartbeat that ends the session, any other.
   */
  readonly kept: readonly string[];
  /** Those under which every call that arrived before `at` is on record. */
  readonly settled: readonly string[];
  /** Those to renew. */
  readonly renewed: readonly string[];
}

/**
 * One transaction of a flush. It also advances the session's sequence number, so it is committed at
 * most once, however often it is sent.
 */
export interface FlushPart {
  /** Counts with distinct keys. */
  readonly counts: readonly UsageCount[];
  /** When the counts are recorded, in milliseconds since the epoch. */
  readonly at: number;
  /** The process's sign of life, which only the last part of a flush carries. */
  readonly heartbeat?: {
    /** Left out if the process has and had none. */
    readonly intents: HeartbeatIntents | undefined;
    /** Whether it ends the session, because the process stops. */
    readonly isStopped: boolean;
  } | undefined;
}

/** The limit on counts in a part. SQLite blocks the thread while it writes them. */
export const MAX_PART_ROWS = 100;

/** The times of a ledger, in milliseconds since the epoch. */
export interface LedgerTime {
  /** By the database's clock. */
  readonly databaseTime: number;
  /** The ledger's time: the database's, or the latest heartbeat where that is later. */
  readonly now: number;
}

/**
 * The shortest gap that counts, in milliseconds: that long without a session is a stop, a clock that
 * is off by that much is wrong, and a session without a heartbeat for that long is silent.
 */
export const SHORTEST_GAP_MS = 60_000;

/** How long a process has to mount its routes, in milliseconds. */
export const MOUNTING_MS = 60_000;

/** How far the database's clock is behind the ledger's time, in milliseconds. */
export function lagOf({ databaseTime, now }: LedgerTime): number {
  return now - databaseTime;
}

/** Returns a session's id, and the process that a person or a supervisor can find. */
export function sessionFacts(session: string, { machine, pid, started }: ProcessIdentity) {
  return { session, machine, pid, started: new Date(started).toISOString() };
}

/** Returns whether a session has not ended. */
export function isOpen({ ended }: Pick<Session, "ended">): boolean {
  return ended === undefined;
}

/** Returns whether a session has mounted any route. If not, it vouches for no time. */
export function hasMounted({ policies }: Pick<Session, "policies">): boolean {
  return Object.keys(policies).length > 0;
}

/**
 * Returns whether a session is open, and its last heartbeat was less than a minute before an
 * instant, or later.
 *
 * @param instant Milliseconds since the epoch.
 */
export function isRunning(session: Pick<Session, "ended" | "reported">, instant: number): boolean {
  return isOpen(session) && instant - session.reported < SHORTEST_GAP_MS;
}

/** Returns whether every call under an intent that came before an instant is on record. */
export function isSettled({ settled }: Pick<Intent, "settled">, instant: number): boolean {
  return settled !== undefined && settled > instant;
}

/** Lists the sessions of running servers after all others. */
export function runningLast(sessions: readonly Session[]): Session[] {
  const latest = Math.max(...sessions.map(({ reported }) => reported));
  const others = sessions.filter((session) => !isRunning(session, latest));
  return [...others, ...sessions.filter((session) => isRunning(session, latest))];
}
