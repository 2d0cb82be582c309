/** What is not on record, and when: each verdict names it. */

import { DAY_MS } from "../../http/timestamp.ts";
import type { Interval } from "../../lifecycle/instant.ts";
import {
  hasMounted,
  MOUNTING_MS,
  type ProcessIdentity,
  SHORTEST_GAP_MS,
} from "../record/records.ts";
import type { CountingSession, Evidence } from "./evidence.ts";

/**
 * The kinds of gaps:
 * - `stop`: no process counted the route. Nobody could call then, unless a process used another
 *   database.
 * - `not counted`: a process counted other routes, or none, and not this one, though it may have
 *   served it.
 * - `lost`: what a process had recorded is not in the ledger any more, as after a restore.
 * - `silent`: a process fell silent without a word. What it answered later is not on record.
 */
export type GapKind = "stop" | "not counted" | "lost" | "silent";

/** A time in which calls may have been answered that are not on record. */
export interface Gap {
  readonly kind: GapKind;
  /** The routes that it concerns, of those that are judged. */
  readonly routes: readonly string[];
  /** In milliseconds since the epoch. */
  readonly start: number;
  /** `undefined` for a process that fell silent, and may still serve. */
  readonly end: number | undefined;
  /** The id of the session that it is about; `undefined` for a stop. */
  readonly session?: string;
  readonly process?: ProcessIdentity;
  /** Whether it is about a process that runs on demand, which platforms may end without a word. */
  readonly onDemand: boolean;
  /** Whether it counts towards the limit of a clear verdict. If not, it is only named. */
  readonly weighs: boolean;
}

/** How long a process that fell silent is named before the period, in milliseconds. */
const SILENT_BEFORE_MS = 30 * DAY_MS;

/** The part of the days asked for that may be missing in a clear verdict. */
const LIMIT = 1 / 30;

/** Since when the sessions of a route are on record; `undefined` if there is none. */
export function routeStart(
  { sessions }: Pick<Evidence, "sessions">,
  route: string,
): number | undefined {
  return sessions.find((session) => counts(session, route))?.counted;
}

/**
 * Returns the gaps of a route, in the order in which they began.
 *
 * @param period.start The start of the period, in milliseconds since the epoch.
 * @param period.since How far back gaps are named: `start`, or earlier if a client is asked for its
 *   rhythm.
 */
export function gapsOf(
  evidence: Evidence,
  route: string,
  { start, since }: { readonly start: number; readonly since: number },
): Gap[] {
  const { sessions, asOf } = evidence;
  const from = Math.max(since, routeStart(evidence, route) ?? Infinity);
  const lost = sessions.flatMap((session) => lostIn(session, route));
  // Where a ledger lost what was recorded, it has no session either, though a process ran.
  const stops = stopsOf(evidence, route).filter((stop) =>
    !lost.some(({ start, end }) => start <= stop.start && stop.end <= end)
  );
  const gaps = [
    ...lost,
    ...stops,
    ...sessions.flatMap((session) => notCountedIn(session, route, asOf)),
  ].filter(({ start, end }) => end > from && end > start && start < asOf);
  const silent = sessions.flatMap((session) => silentIn(session, route))
    .filter((gap) => gap.start >= Math.min(since, start - SILENT_BEFORE_MS));
  return [...gaps, ...silent].sort((a, b) => a.start - b.start);
}

/** A gap that has an end, be it the instant of the verdict. */
type EndedGap = Gap & { readonly end: number };

/** Returns each minute or more without a session that counts a route, from the first one to the instant. */
function stopsOf({ sessions, asOf }: Evidence, route: string): EndedGap[] {
  const gaps: EndedGap[] = [];
  let last: CountingSession | undefined;
  const addBefore = (end: number) => {
    if (last === undefined || last.onDemand || end - last.reported < SHORTEST_GAP_MS) return;
    const { reported: start } = last;
    gaps.push({ kind: "stop", routes: [route], start, end, onDemand: false, weighs: true });
  };
  for (const session of sessions.filter((session) => counts(session, route))) {
    addBefore(session.counted);
    if (last === undefined || session.reported > last.reported) last = session;
  }
  addBefore(asOf);
  return gaps;
}

/** Returns the time whose calls were lost before a session. Nobody knows to which routes they were. */
function lostIn(session: CountingSession, route: string): EndedGap[] {
  const { id, process, began, lost, onDemand } = session;
  if (lost === undefined) return [];
  const about = { session: id, process, onDemand, weighs: true };
  return [{ kind: "lost", routes: [route], start: lost, end: began, ...about }];
}

/** Returns the time in which the process of a session counted, but not a route. */
function notCountedIn(session: CountingSession, route: string, asOf: number): EndedGap[] {
  const { id, process, policies, began: start, reported, continued, onDemand } = session;
  if (Object.hasOwn(policies, route) || !isSubstantial(session)) return [];
  const end = continued ?? (session.isOver ? Math.max(start, reported) : asOf);
  // A process that mounts no route may be a job, or the primary of a cluster.
  const about = { session: id, process, onDemand, weighs: hasMounted(session) };
  return [{ kind: "not counted", routes: [route], start, end, ...about }];
}

/** Returns the time since a process fell silent, whatever routes it counted: it may serve others. */
function silentIn(session: CountingSession, route: string): Gap[] {
  const { id, process, reported: start, ended, isOver, onDemand } = session;
  if (ended !== undefined || !isOver || !isSubstantial(session)) return [];
  const about = { session: id, process, onDemand, weighs: !onDemand };
  return [{ kind: "silent", routes: [route], start, end: undefined, ...about }];
}

/** Returns whether a session counted a route, or lived so long that it had time to mount some. */
function isSubstantial(session: CountingSession): boolean {
  return hasMounted(session) || session.reported - session.began >= MOUNTING_MS;
}

/** Returns whether a session counts a route, or counted it in what is on record of it. */
export function counts(
  { policies, counted, reported, isOver }: CountingSession,
  route: string,
): boolean {
  // What a session reports first was read just before it began.
  return Object.hasOwn(policies, route) && (!isOver || reported >= counted);
}

/** Returns how much of a period may be missing in a clear verdict, in milliseconds. */
export function limitOf(days: number): number {
  return days * DAY_MS * LIMIT;
}

/**
 * Returns how much of a period the gaps of a route take, in milliseconds: the time in any of them, and
 * a minute for each process that fell silent in it.
 */
export function missingIn(gaps: readonly Gap[], { start, end }: Interval): number {
  let missing = 0;
  let reach = start;
  for (const gap of gaps.filter(({ weighs }) => weighs)) {
    if (gap.kind === "silent") {
      if (gap.start >= start && gap.start < end) missing += SHORTEST_GAP_MS;
      continue;
    }
    const until = Math.min(gap.end ?? end, end);
    missing += Math.max(0, until - Math.max(gap.start, reach));
    reach = Math.max(reach, until);
  }
  return missing;
}

/** Merges what several routes have in common. */
export function mergedGaps(gaps: readonly Gap[]): Gap[] {
  const merged = new Map<string, Gap>();
  for (const gap of gaps) {
    const { kind, start, end, session } = gap;
    const key = JSON.stringify([kind, start, end, session]);
    const { routes = [] } = merged.get(key) ?? {};
    merged.set(key, { ...gap, routes: [...routes, ...gap.routes] });
  }
  return [...merged.values()].sort((a, b) => a.start - b.start);
}
