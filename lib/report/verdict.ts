/**
 * The verdict on removing the deprecated routes, and the gaps in the ledger's record.
 */

import { type Heartbeat, latestHeartbeats } from "../storage/ledger/ledger.ts";
import type { Interval } from "../lifecycle/policy.ts";
import { HEARTBEAT_TIMEOUT_MS } from "../usage/recorder.ts";

/** The verdict on whether removal is safe. */
export type Verdict =
  | { readonly verdict: "clear" }
  | { readonly verdict: "called" }
  /** No calls were counted, but the record is incomplete. */
  | { readonly verdict: "unknown"; readonly gaps: readonly Gap[] };

/** An interval for which the ledger may lack calls, and why. */
export type Gap =
  /** The rows of these days were deleted. */
  | Interval & { readonly reason: "deleted" }
  /** No server was registered. */
  | Interval & { readonly reason: "no server" }
  /** A registered server has sent no heartbeat since. */
  | Interval & { readonly reason: "silent"; readonly server: string };

/** The data that shows how complete a ledger is. */
export interface Coverage {
  /** In the order of `from`. */
  readonly heartbeats: readonly Heartbeat[];
  /** The day before which rows were deleted. */
  readonly keptFrom: string | undefined;
}

/**
 * Returns the start of the ledger's record, in milliseconds since the epoch: when the first server
 * started counting, or the first retained day; `undefined` if no server ever counted.
 */
export function recordedSince({ heartbeats, keptFrom }: Coverage): number | undefined {
  const begun = heartbeats[0]?.from;
  if (begun === undefined || keptFrom === undefined) return begun;
  return Math.max(begun, Date.parse(keptFrom));
}

/**
 * Returns the gaps in the record of an interval. Up to {@linkcode HEARTBEAT_TIMEOUT_MS} without any
 * server is no gap.
 *
 * @param now Milliseconds since the epoch.
 */
export function gapsIn(coverage: Coverage, { start, end }: Interval, now: number): Gap[] {
  const { heartbeats, keptFrom } = coverage;
  const gaps: Gap[] = [];
  const kept = Math.max(start, Math.min(end, Date.parse(keptFrom ?? "") || start));
  if (kept > start) gaps.push({ reason: "deleted", start, end: kept });

  const latest = latestHeartbeats(heartbeats);
  let covered = kept;
  for (const heartbeat of heartbeats) {
    const from = Math.min(heartbeat.from, end);
    if (from - covered > HEARTBEAT_TIMEOUT_MS) {
      gaps.push({ reason: "no server", start: covered, end: from });
    }
    const hasEnded = heartbeat.end !== undefined || latest.get(heartbeat.server) !== heartbeat;
    covered = Math.max(covered, hasEnded ? heartbeat.until : Infinity);
  }
  if (end - covered > HEARTBEAT_TIMEOUT_MS) gaps.push({ reason: "no server", start: covered, end });

  for (const { server, start: since } of silentServers(heartbeats, now)) {
    const start = Math.max(since, kept);
    if (start < end) gaps.push({ reason: "silent", server, start, end });
  }
  return gaps.sort((a, b) => a.start - b.start);
}

/**
 * Returns the servers that did not stop, but have sent no heartbeat for
 * {@linkcode HEARTBEAT_TIMEOUT_MS}, each with the time of its last one.
 *
 * @param heartbeats In the order of `from`.
 * @param now Milliseconds since the epoch.
 */
export function silentServers(heartbeats: readonly Heartbeat[], now: number) {
  return [...latestHeartbeats(heartbeats).values()]
    .filter(({ until, end }) => end === undefined && now - until > HEARTBEAT_TIMEOUT_MS)
    .map(({ server, until }) => ({ server, start: until }));
}
