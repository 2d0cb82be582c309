/** The records of a ledger: calls to deprecated routes, and the processes that counted them. */

import { isPrintable, quoted } from "../../input/printable.ts";
import type { Phase, RoutePolicies } from "../../lifecycle/policy.ts";

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

export const COUNT_KEY = [
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

/** A process, as people and supervisors know it. Neither tells two processes apart in containers. */
export interface ProcessIdentity {
  /** The host name of the machine; `undefined` if the process may not read it. */
  readonly machine: string | undefined;
  readonly pid: number;
  /** When the process started, by the machine's clock, in milliseconds since the epoch. */
  readonly started: number;
}

/** The ways in which a session ends: see {@linkcode Session}. */
export const ENDS = ["stopped", "continued"] as const;

/**
 * A time in which one process counted calls. Instants are in milliseconds since the epoch, by the
 * ledger's time.
 */
export interface Session {
  /** Chosen before the first attempt to begin it, so that an attempt which landed is found again. */
  readonly id: string;
  /** The id of the opened record that has this session and those before and after it. */
  readonly opened: string;
  readonly process: ProcessIdentity;
  /** The policies of the routes that are mounted. The process announces and counts these only. */
  readonly policies: RoutePolicies;
  /** Whether a time without a process is a time without calls, because the process runs on demand. */
  readonly onDemand: boolean;
  /** The URL at which clients reach the application, if it is known. */
  readonly publicUrl?: string | undefined;
  /** The URL at which owners of clients reach the operator, if there is one. */
  readonly contact?: string | undefined;
  /** The number of whole days for which the process retains counts. */
  readonly retainDays: number;
  readonly began: number;
  /**
   * What the process answered before this instant, since it opened the record, is on record, except
   * what the ledger lost. Until a session's first heartbeat is written as a whole, this is before
   * `began`: the last report of the session before, or the start of the process.
   */
  readonly reported: number;
  /** When the process last wrote. */
  readonly written: number;
  /** The number of parts that were written. */
  readonly sequence: number;
  /**
   * How the session ended, if it did: the process stopped, or continued in another session. Nothing is
   * added to a session that ended.
   */
  readonly ended?: typeof ENDS[number] | undefined;
  /**
   * Since when the calls that the process had recorded are lost, because the ledger did not have the
   * session before as the process had written it. They are lost until `began`.
   */
  readonly lost?: number | undefined;
}

/** What a process says of itself in every session. */
export type SessionFacts = Pick<
  Session,
  "opened" | "process" | "onDemand" | "publicUrl" | "contact" | "retainDays"
>;

/**
 * A part of a heartbeat: one transaction, sent again unchanged until its outcome is known. It advances
 * the session's sequence number, so it is recorded once, however often it is sent.
 */
export interface Part {
  /** Counts with distinct keys, at most {@linkcode MAX_PART_ROWS}. */
  readonly counts: readonly UsageCount[];
  /** The ledger's time, read before the heartbeat's counts were taken. */
  readonly before: number;
  /**
   * The milliseconds that the process has lived since that time was read for its last heartbeat. If
   * the ledger's time advanced by a minute more, the machine slept.
   */
  readonly lived: number;
  /** Whether it is the last part of the heartbeat. Only then is the process known to have reported. */
  readonly isLast: boolean;
  /** Whether the process stops with it, no call being unanswered. */
  readonly isStopped: boolean;
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
 * is off by that much is wrong, a machine whose process lived that much less than the time that
 * passed has slept, and a session that has not written for that long is over.
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

/** Returns whether a session has mounted any route. If not, it vouches for no time. */
export function hasMounted({ policies }: Pick<Session, "policies">): boolean {
  return Object.keys(policies).length > 0;
}

/**
 * Returns whether a session is over at an instant of the ledger's time: it ended, or its process has
 * written nothing for a minute.
 */
export function isOver(
  { ended, written }: Pick<Session, "ended" | "written">,
  now: number,
): boolean {
  return ended !== undefined || now - written >= SHORTEST_GAP_MS;
}
