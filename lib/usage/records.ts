/** The records of a ledger: who called the deprecated routes, and which processes were counting. */

import type { Phase, Policy } from "../lifecycle/policy.ts";

/**
 * How the removal of a route affects a call: "breaking" if the call is served now, or would be
 * outside a brownout; "none" otherwise, e.g. for a malformed token.
 */
export type Impact = typeof IMPACTS[number];

/** Every {@linkcode Impact}. */
export const IMPACTS = ["breaking", "none"] as const;

/** Calls that are counted together: what was called, and by whom. */
export interface UsageCount {
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  /** The start of the brownout, e.g. `2027-06-10T09:00:00Z`; empty in any other phase. */
  readonly brownout: string;
  /** The class of the status, e.g. `2xx`. */
  readonly status: string;
  readonly impact: Impact;
  /** The name of the client, e.g. `app Overcast`. */
  readonly client: string;
  /** The release of an app, e.g. `3.0.1`; the app of any other client, e.g. `okhttp`; or empty. */
  readonly release: string;
  readonly calls: number;
}

/** Calls on record, by the day on which they were recorded. */
export interface UsageRow extends UsageCount {
  /** UTC, e.g. `2027-01-31`. */
  readonly day: string;
  /** When the last of them was recorded, in milliseconds since the epoch. */
  readonly last: number;
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

/** Returns what distinguishes counts from others, as a text to sort by. */
export function keyOf(count: UsageCount): string {
  return COUNT_KEY.map((column) => count[column]).join("\0");
}

/** The policy announced for each deprecated route, by the route's path. */
export type RoutePolicies = Readonly<Record<string, Policy>>;

/** Why a session ended: see {@linkcode Session}. */
export const ENDS = ["stopped", "gone", "lapsed"] as const;

/** The registration of one process. Times are the ledger's, in milliseconds since the epoch. */
export interface Session {
  readonly id: string;
  /** The policies that the process announces. It counts the calls of these routes, and of no others. */
  readonly policies: RoutePolicies;
  readonly began: number;
  /** When it last reported: every call that it answered before is on record. */
  readonly reported: number;
  /** The number of transactions that have extended it. */
  readonly sequence: number;
  /**
   * Why it ended, if it did: the process stopped, the operator declared it gone, or it lapsed,
   * because the process did not live through the time that followed. It is never extended again.
   */
  readonly ended?: typeof ENDS[number] | undefined;
}

/**
 * One transaction of a flush. However often it is sent, it is committed once or not at all, because
 * it also advances the session's sequence number.
 */
export interface FlushPart {
  /** With distinct keys. */
  readonly counts: readonly UsageCount[];
  /** When they are recorded, in milliseconds since the epoch. */
  readonly at: number;
  /** The time to which the session's report moves; only the last part of a flush moves it. */
  readonly reported?: number | undefined;
  /** Whether the process stops with this part. */
  readonly isStopped?: boolean;
}

/** Counts per part, since SQLite blocks the thread while it writes them. */
export const MAX_PART_ROWS = 100;

/** The times of a ledger, in milliseconds since the epoch. */
export interface LedgerTime {
  /** The database's clock. */
  readonly clock: number;
  /** The ledger's time: the clock, or the latest report of a session where that is later. */
  readonly now: number;
}

/**
 * Milliseconds that matter: without a session, they leave a gap in the record; a clock that is off
 * by so much is wrong; and a session that has not reported for so long is silent.
 */
export const MINUTE_MS = 60_000;

/** How far the database's clock is behind the ledger's time, in milliseconds. */
export function lagOf({ clock, now }: LedgerTime): number {
  return now - clock;
}
