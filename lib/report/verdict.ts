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
  /** No more calls than allowed were counted, but the record is incomplete. */
  | { readonly verdict: "unknown"; readonly gaps: readonly Gap[] };

/** An interval for which the ledger may lack calls, and why. */
export type Gap =
  /** Nothing was on record yet. */
  | Interval & { readonly reason: "not begun" }
  /** The rows of these days were deleted. */
  | Interval & { readonly reason: "deleted" }
  /** No server was registered. */
  | Interval & { readonly reason: "no server" }
  /** A registered server sent no heartbeat; whether it has begun a new record since. */
  | Interval & { readonly reason: "silent"; readonly server: string; readonly isBack: boolean }
  /** A server reported from the future, so some clock was wrong, and its heartbeat proves nothing. */
  | Interval & { readonly reason: "ahead"; readonly server: string; readonly reported: number };

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
 * @param now When the heartbeats were read, by the ledger's clock. Those beyond it prove nothing.
 */
export function gapsIn(coverage: Coverage, { start, end }: Interval, now: number): Gap[] {
  const { heartbeats, keptFrom } = coverage;
  const gaps: Gap[] = [];
  const kept = Math.max(start, Math.min(end, Date.parse(keptFrom ?? "") || start));
  if (kept > start) gaps.push({ reason: "deleted", start, end: kept });

  let covered = kept;
  for (const [index, heartbeat] of heartbeats.entries()) {
    const { server, until } = heartbeat;
    if (isAhead(heartbeat, now)) {
      if (heartbeat.end === "gone") continue;
      const since = heartbeat.from > now ? kept : Math.max(heartbeat.from, kept);
      if (since < end) gaps.push({ reason: "ahead", server, reported: until, start: since, end });
      continue;
    }
    const from = Math.min(heartbeat.from, end);
    if (from - covered > HEARTBEAT_TIMEOUT_MS) {
      const isFirst = keptFrom === undefined && heartbeat === heartbeats[0];
      gaps.push({ reason: isFirst ? "not begun" : "no server", start: covered, end: from });
    }
    if (heartbeat.end !== undefined) covered = Math.max(covered, until);
    else { // it may have served until its next record
      const later = heartbeats.slice(index + 1).find((other) => other.server === server);
      const next = later?.from ?? Infinity;
      const silent = { start: Math.max(until, kept), end: Math.min(next, end) };
      if (silent.start < silent.end) {
        gaps.push({ reason: "silent", server, isBack: next < Infinity, ...silent });
      }
      covered = Math.max(covered, next);
    }
  }
  if (end - covered > HEARTBEAT_TIMEOUT_MS) gaps.push({ reason: "no server", start: covered, end });
  return gaps.sort((a, b) => a.start - b.start);
}

/** Whether a server reported from the future. */
export function isAhead({ until }: Heartbeat, now: number): boolean {
  return until > now;
}

/** Returns the latest heartbeats of the servers that have not ended. */
export function running(heartbeats: readonly Heartbeat[]): Heartbeat[] {
  return [...latestHeartbeats(heartbeats).values()].filter(({ end }) => end === undefined);
}
