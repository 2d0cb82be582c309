/** What a ledger records: who called the deprecated routes, and which periods were counted. */

import type { Phase, Policy } from "../../lifecycle/policy.ts";
import { dayOf } from "./day.ts";

/**
 * How the removal of a route affects a call: "breaking" if the call is served now, or would be
 * outside a brownout; "none" otherwise, e.g. for a malformed token.
 */
export type Impact = typeof IMPACTS[number];

/** Every {@linkcode Impact}. */
export const IMPACTS = ["breaking", "none"] as const;

/** What distinguishes rows: what was called, and by whom. */
export interface UsageKey {
  /** UTC, e.g. `2027-01-31`. */
  readonly day: string;
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  /** The class of the status, e.g. `2xx`. */
  readonly status: string;
  readonly impact: Impact;
  /** The name of the client, e.g. `app Overcast`. */
  readonly client: string;
}

export interface UsageRow extends UsageKey {
  calls: number;
  /** Milliseconds since the epoch, as is `last`. */
  first: number;
  last: number;
}

/** The calls of one release of a client that removal breaks. They are in the rows of usage, too. */
export interface ReleaseRow extends Pick<UsageRow, "day" | "client" | "calls" | "last"> {
  /** e.g. `3.0.1` */
  readonly release: string;
}

/** A row of either table. */
export type LedgerRow = UsageRow | ReleaseRow;

export function isRelease(row: LedgerRow): row is ReleaseRow {
  return "release" in row;
}

/** The columns that distinguish rows. */
export const USAGE_KEY = ["day", "route", "method", "phase", "status", "impact", "client"] as const;
export const RELEASE_KEY = ["day", "client", "release"] as const;

/** Returns what distinguishes a row from others, as a text to sort by. */
export function keyOf(row: LedgerRow): string {
  const key: readonly string[] = isRelease(row) ? RELEASE_KEY : USAGE_KEY;
  return key.map((column) => Object(row)[column]).join("\0");
}

/** What is announced for each deprecated route, by the route's path. */
export type RoutePolicies = Readonly<Record<string, Policy>>;

/** A period in which a server was counting, by the ledger's clock. */
export interface Heartbeat {
  readonly server: string;
  /** What the server announced. It counted the calls of these routes, and of no others. */
  readonly policies: RoutePolicies;
  readonly from: number;
  /** When the server last reported: every call answered before is in the ledger. */
  readonly until: number;
  /**
   * Why no more is expected: the server stopped, or the operator declared it gone. Without a
   * reason, but with a later period of the same server, what it counted in between may be lost.
   */
  readonly end?: "stopped" | "gone" | undefined;
  /** When the operator declared the server gone. */
  readonly declaredAt?: number | undefined;
  /** The number of transactions that have extended it. */
  readonly sequence: number;
}

/**
 * One transaction of a flush. However often it is tried, it is committed once or not at all, because
 * it also advances the sequence number of the server's heartbeat.
 */
export interface FlushPart extends Pick<Heartbeat, "until" | "end"> {
  readonly rows: readonly LedgerRow[];
}

/** Rows per part, since SQLite blocks the thread while it writes them. */
export const MAX_PART_ROWS = 100;

/** Times in a ledger, in milliseconds since the epoch. */
export interface LedgerTime {
  /** The time of the database. */
  readonly now: number;
  /** The latest heartbeat, apart from servers declared gone; 0 if there is none. */
  readonly latest: number;
}

/** Milliseconds by which two clocks may differ. */
export const MAX_CLOCK_OFFSET_MS = 60_000;

/**
 * Returns the latest heartbeat of every server.
 *
 * @param heartbeats Ordered by `from`.
 */
export function latestHeartbeats(heartbeats: readonly Heartbeat[]): Map<string, Heartbeat> {
  return new Map(heartbeats.map((heartbeat) => [heartbeat.server, heartbeat]));
}

/**
 * Merges rows with the same key. Also repairs rows whose last call is before their first, because
 * the clock was set back while counting.
 */
export function mergeRows<Row extends LedgerRow>(rows: readonly Row[]): Row[] {
  const sums = new Map<string, Row>();
  for (const row of rows) {
    const key = keyOf(row);
    const sum = sums.get(key) ?? { ...row, calls: 0 };
    sum.calls += row.calls;
    const times = isRelease(row) ? [row.last] : [row.first, row.last];
    if (!isRelease(sum)) sum.first = Math.min(sum.first, ...times);
    sum.last = Math.max(sum.last, ...times);
    sums.set(key, sum);
  }
  return [...sums.values()];
}

/**
 * Returns rows with times and days that the ledger's clock allows. A server's clock may be wrong,
 * even for a moment. A time outside the interval becomes its end: dated too late, a call still counts
 * for the gate's period; dated too early, it might not.
 *
 * @param earliest In milliseconds since the epoch, like `latest`.
 */
export function dateRows(
  rows: readonly LedgerRow[],
  { earliest, latest }: { readonly earliest: number; readonly latest: number },
): LedgerRow[] {
  const allowed = (time: number) => earliest <= time && time <= latest ? time : latest;
  return rows.map((row) => {
    const last = allowed(row.last);
    if (isRelease(row)) return { ...row, day: dayOf(last), last };
    const first = allowed(row.first);
    return { ...row, day: dayOf(Math.max(first, last)), first, last };
  });
}
