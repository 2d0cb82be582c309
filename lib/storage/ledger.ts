/**
 * The ledger: who called the deprecated routes, and for which time that is known. Any number of
 * servers share one. Every driver passes `tests/ledger_suite.ts`.
 */

import type { Phase } from "../lifecycle/policy.ts";

/**
 * What the removal of a route does to a call: "breaking" when its caller gets an answer now, or
 * would outside a brownout, that the removal takes away; "none" for all else, e.g. a malformed
 * token.
 */
export type Impact = typeof IMPACTS[number];

/** Every {@linkcode Impact}. */
export const IMPACTS = ["breaking", "none"] as const;

/** What was called, and by whom. */
export interface UsageKey {
  /** UTC, e.g. `2027-01-31`. */
  readonly day: string;
  /** The route's path, e.g. `/audio/:token`. */
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  /** The class of the status, e.g. `2xx`. */
  readonly status: string;
  readonly impact: Impact;
  /** The product that called, without its version. */
  readonly client: string;
}

/** One row of the ledger: who called what, how often, and when. */
export interface UsageRow extends UsageKey {
  calls: number;
  /** Milliseconds since the epoch, as is `last`. */
  first: number;
  last: number;
}

/** A stretch of time in which a server was counting: milliseconds since the epoch. */
export interface Heartbeat {
  readonly server: string;
  readonly from: number;
  /** The heartbeat: every call that the server answered before this is in the ledger. */
  readonly until: number;
  /** Why no further heartbeat is due: the server stopped, or the operator said that it is gone. */
  readonly end?: "stopped" | "gone";
}

/** A ledger. Every method throws {@linkcode StorageError} when the engine fails. */
export interface Ledger {
  /**
   * Adds rows to those of the same key: sums their calls, and widens `first` and `last`.
   *
   * @param onAdded Told of every part that is in the ledger for good, so that after a fault only
   *   the rest is added again.
   */
  add(rows: readonly UsageRow[], onAdded: (rows: readonly UsageRow[]) => void): Promise<void>;

  /** The rows of a day and of all days after it, in the order of days, read incrementally. */
  usage(fromDay: string): AsyncIterable<UsageRow>;

  /** Writes a watch, in place of what was written for the same `server` and `from`. */
  recordHeartbeat(heartbeat: Heartbeat): Promise<void>;

  /** Every watch, in the order of `from`. */
  heartbeats(): Promise<Heartbeat[]>;

  /**
   * Removes the rows of the days before one, and the watches that ended before it. A server that
   * fell silent stays known. {@linkcode Ledger.keptFrom} tells of the removal before it begins.
   */
  forget(beforeDay: string): Promise<void>;

  /** The day before which rows were removed, as given to {@linkcode Ledger.forget}, if any. */
  keptFrom(): Promise<string | undefined>;
}

/**
 * The watches that {@linkcode Ledger.forget} leaves: those that reach the day, and the latest of
 * every server that may still be answering.
 *
 * @param heartbeats In the order of `from`.
 */
export function retained(heartbeats: readonly Heartbeat[], beforeDay: string): Heartbeat[] {
  const latest = latestHeartbeats(heartbeats);
  return heartbeats.filter((heartbeat) =>
    heartbeat.until >= Date.parse(beforeDay) ||
    (heartbeat.end === undefined && latest.get(heartbeat.server) === heartbeat)
  );
}

/**
 * The latest watch of every server.
 *
 * @param heartbeats In the order of `from`.
 */
export function latestHeartbeats(heartbeats: readonly Heartbeat[]): Map<string, Heartbeat> {
  return new Map(heartbeats.map((heartbeat) => [heartbeat.server, heartbeat]));
}

/**
 * Adds rows up, so that each client has one for all that is the same about its calls. A row that was
 * counted while the clock was set back ends before it begins; here it no longer does.
 */
export function addUp(rows: readonly UsageRow[]): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const { day, route, method, phase, status, impact, client } = row;
    const key = [day, route, method, phase, status, impact, client].join(" ");
    const sum = sums.get(key) ?? { ...row, calls: 0 };
    sum.calls += row.calls;
    sum.first = Math.min(sum.first, row.first, row.last);
    sum.last = Math.max(sum.last, row.first, row.last);
    sums.set(key, sum);
  }
  return [...sums.values()];
}
