/** The verdict on removing the deprecated routes, and the gaps in the ledger's record. */

import { type Heartbeat, latestHeartbeats } from "../storage/ledger/records.ts";
import type { Interval } from "../lifecycle/policy.ts";
import { HEARTBEAT_TIMEOUT_MS } from "../usage/recorder.ts";

/** Whether the routes that the verdict names can be removed. */
export type Verdict =
  /** No more calls than allowed, by the record and, where it was needed, the operator's word. */
  | { readonly verdict: "clear"; readonly trusted: Trusted }
  | { readonly verdict: "called" }
  /** No more calls than allowed were counted, but calls may be missing. */
  | {
    readonly verdict: "unknown";
    readonly gaps: readonly Gap[];
    readonly hidden: readonly HiddenCalls[];
  };

/** What a clear verdict takes from the operator. */
export interface Trusted {
  /** Nothing else served between a server's end and the next start. */
  readonly stops: readonly Interval[];
  /** These servers answered nothing after their last heartbeat. */
  readonly gone: readonly Pick<Heartbeat, "server" | "until">[];
}

/** An interval of which the ledger may lack calls, and why. */
export type Gap =
  /** The rows of these days were deleted. */
  | Interval & { readonly reason: "deleted" }
  /** No server was registered. `isStop` is whether the server before has an end. */
  | Interval & { readonly reason: "no server"; readonly isStop: boolean }
  /** Servers ran that did not count this route. */
  | Interval & { readonly reason: "not counted"; readonly route: string }
  /**
   * A registered server has sent no heartbeat since it last reported (`silent`), or it reported
   * from the future (`ahead`): then some clock was wrong, and its heartbeat proves nothing. The gap
   * is over once the server has begun another heartbeat, or the operator has declared it gone.
   */
  | Interval & Pick<Heartbeat, "server"> & {
    readonly reason: "silent" | "ahead";
    readonly reported: number;
    readonly isOver: boolean;
  };

/** Why calls that are sent to a route may not reach the servers. */
export interface HiddenCalls {
  readonly route: string;
  readonly reason: string;
}

/** The data that shows how complete a ledger is. */
export interface Coverage {
  /** In the order of `from`. */
  readonly heartbeats: readonly Heartbeat[];
  /** The day before which rows were deleted. */
  readonly keptFrom: string | undefined;
}

/** Returns the verdict on a period that has no more calls than allowed. */
export function judge(
  gaps: readonly Gap[],
  hidden: readonly HiddenCalls[],
  { trustStops, gone }: Pick<Trusted, "gone"> & { readonly trustStops: boolean },
): Verdict {
  const isTrusted = (gap: Gap) => trustStops && gap.reason === "no server" && gap.isStop;
  const open = gaps.filter((gap) => !isTrusted(gap));
  if (open.length + hidden.length > 0) return { verdict: "unknown", gaps: open, hidden };
  const stops = gaps.map(({ start, end }) => ({ start, end }));
  return { verdict: "clear", trusted: { stops, gone } };
}

/** Returns the names of servers whose silence has no end yet. */
export function stillSilent(gaps: readonly Gap[]): string[] {
  return [...new Set(gaps.flatMap((gap) => "isOver" in gap && !gap.isOver ? [gap.server] : []))];
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
 * @param now When the heartbeats were read, by the ledger's clock. Later heartbeats prove nothing.
 */
export function gapsIn(
  { heartbeats, keptFrom }: Coverage,
  { start, end, routes }: Interval & { readonly routes: readonly string[] },
  now: number,
): Gap[] {
  const gaps: Gap[] = [];
  const kept = Math.max(start, Math.min(end, Date.parse(keptFrom ?? "") || start));
  if (kept > start) gaps.push({ reason: "deleted", start, end: kept });

  let covered = kept;
  let last: Heartbeat | undefined; // the one with the latest end
  for (const [index, heartbeat] of heartbeats.entries()) {
    const { server, until } = heartbeat;
    if (isAhead(heartbeat, now)) {
      const since = heartbeat.from > now ? kept : Math.max(heartbeat.from, kept);
      const until = Math.min(heartbeat.declaredAt ?? end, end);
      const ahead = { server, reported: heartbeat.until, isOver: heartbeat.end === "gone" };
      if (since < until) gaps.push({ reason: "ahead", ...ahead, start: since, end: until });
      continue;
    }
    const from = Math.min(heartbeat.from, end);
    if (from - covered > HEARTBEAT_TIMEOUT_MS) gaps.push(gapAfter(last, covered, from));
    if (last === undefined || until > last.until) last = heartbeat;
    if (heartbeat.end !== undefined) covered = Math.max(covered, until);
    else { // it may have served until its next record
      const later = heartbeats.slice(index + 1).find((other) => other.server === server);
      const next = later?.from ?? Infinity;
      const silent = { start: Math.max(until, kept), end: Math.min(next, end) };
      if (silent.start < silent.end) {
        const isOver = next < Infinity;
        gaps.push({ reason: "silent", server, reported: until, isOver, ...silent });
      }
      covered = Math.max(covered, next);
    }
  }
  if (end - covered > HEARTBEAT_TIMEOUT_MS) gaps.push(gapAfter(last, covered, end));
  const counting = heartbeats.filter((heartbeat) => !isAhead(heartbeat, now));
  gaps.push(...routes.flatMap((route) => uncounted(counting, route, { start: kept, end })));
  return gaps.sort((a, b) => a.start - b.start);
}

function gapAfter(last: Heartbeat | undefined, start: number, end: number): Gap {
  return { reason: "no server", isStop: last?.end !== undefined, start, end };
}

/** Returns when servers ran that did not count a route, and merges times in quick succession. */
function uncounted(heartbeats: readonly Heartbeat[], route: string, within: Interval): Gap[] {
  const gaps: { start: number; end: number }[] = [];
  const awaited = new Set(running(heartbeats));
  for (const heartbeat of heartbeats) {
    const { policies, from } = heartbeat;
    const until = awaited.has(heartbeat) ? Infinity : heartbeat.until;
    const [start, end] = [Math.max(from, within.start), Math.min(until, within.end)];
    if (start >= end || Object.hasOwn(policies, route)) continue;
    const last = gaps.at(-1);
    if (last === undefined || start - last.end > HEARTBEAT_TIMEOUT_MS) gaps.push({ start, end });
    else last.end = Math.max(last.end, end);
  }
  return gaps.map((gap) => ({ reason: "not counted", route, ...gap }));
}

/** Whether a heartbeat was in the future: now, or when the operator declared its server gone. */
export function isAhead({ until, declaredAt = Infinity }: Heartbeat, now: number): boolean {
  return until > Math.min(now, declaredAt);
}

/** Returns the latest heartbeats of the servers that have not ended. */
export function running(heartbeats: readonly Heartbeat[]): Heartbeat[] {
  return [...latestHeartbeats(heartbeats).values()].filter(({ end }) => end === undefined);
}
