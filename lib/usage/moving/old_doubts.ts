/**
 * The doubts about an older record that its sessions would not show in another one. There they are
 * intents: a copy never makes a verdict better than the two records were.
 */

import type { Interval } from "../../lifecycle/instant.ts";
import { type Intent, LEASE_MS, type Session, SHORTEST_GAP_MS } from "../record/records.ts";
import { announcedPolicies } from "../verdict/announcements.ts";
import { endOf, restoresIn, stopsIn } from "../verdict/doubts.ts";
import type { Closing, OldState } from "./old_record.ts";

/** An older record that was closed. */
export interface ClosedRecord extends OldState {
  readonly closing: Closing;
  /** The start of the record, in milliseconds since the epoch. */
  readonly started: number | undefined;
}

/** The record into which another one is copied. */
export interface OwnRecord {
  /** Its sessions, in the order in which they began. */
  readonly sessions: readonly Session[];
  readonly started: number | undefined;
  /** The ledger's time, in milliseconds since the epoch. */
  readonly now: number;
}

/** Returns the names of all routes that sessions have. */
export function routesOf(sessions: readonly Session[]): string[] {
  return Object.keys(announcedPolicies(sessions)).sort();
}

/** Returns the intents of an older record, and its doubts as intents. */
export function intentsOf(old: ClosedRecord, own: OwnRecord): Intent[] {
  const { closing: { id, at }, intents, started, timeline } = old;
  const routes = routesOf(old.sessions);
  const stops = stopsUntil(at, old);
  const restores = restoresIn({ sessions: old.sessions, timeline, judgedAt: at });
  /** Returns an intent for each route, of a session or, if none is to blame, of the copy. */
  const intentsFor = (
    { start, end }: Interval,
    { name, session = id, of = routes }: {
      readonly name: string;
      readonly session?: string;
      readonly of?: readonly string[];
    },
  ) =>
    of.map((route, index): Intent => (
      { id: `${name} ${index}`, session, route, since: at, until: end, settled: start }
    ));
  return [
    // In the other record, only stops after the copy make an intent last longer.
    ...intents.map((intent): Intent => ({
      ...intent,
      since: at,
      until: endOf(intent, stops),
      settled: intent.settled ?? intent.since,
    })),
    ...old.silences.flatMap(({ session, reported, until = at }) =>
      intentsFor({ start: reported, end: until }, { name: session, session })
    ),
    ...restores.flatMap(({ start, end }) =>
      intentsFor({ start, end: end + LEASE_MS }, { name: `${id} restored ${start}` })
    ),
    ...stops.filter((stop) => isHidden(stop, old, own)).flatMap((stop) =>
      intentsFor(withLease(stop, started), { name: `${id} stop ${stop.start}` })
    ),
    ...hiddenBy(old, own).flatMap((stop) =>
      intentsFor(withLease(stop, own.started), {
        name: `${id} own ${stop.start}`,
        of: routesOf([...own.sessions, ...old.sessions]),
      })
    ),
  ];
}

/** Intents from before a record's start are not on record any more. */
function withLease({ start, end }: Interval, started: number | undefined): Interval {
  return { start, end: start === started ? end + LEASE_MS : end };
}

/**
 * Returns whether a stop in an older record may not show in the other one, because sessions there
 * cover it. A clock that was wrong in it, or what was lost with it, would not show either.
 */
function isHidden(
  { end }: Interval,
  { sessions, closing: { at } }: ClosedRecord,
  own: OwnRecord,
): boolean {
  const first = Math.min(...own.sessions.map(({ began }) => began));
  if (end !== at) return end > first;
  // Since the last heartbeat: a stop until the other record's first session, unless that is too
  // soon to tell. If every process said that it ended, nothing came after it.
  const last = Math.max(...sessions.map(({ reported }) => reported));
  const latest = sessions.filter(({ reported }) => last - reported < SHORTEST_GAP_MS);
  if (first - last >= SHORTEST_GAP_MS) return false;
  return first < last || latest.some(({ ended }) => ended === undefined);
}

/** Returns the stops in the other record that the sessions of an older one may cover. */
function hiddenBy({ sessions }: ClosedRecord, own: OwnRecord): Interval[] {
  const first = Math.min(...sessions.map(({ began }) => began));
  const last = Math.max(...sessions.map(({ reported }) => reported));
  return stopsUntil(own.now, own).filter(({ start, end }) => start < last && end > first);
}

/** Returns the stops in a record, with one that lasts until an instant. */
function stopsUntil(
  at: number,
  { sessions, started }: Pick<OwnRecord, "sessions" | "started">,
): Interval[] {
  const [any] = sessions;
  if (any === undefined) return [];
  const policies = announcedPolicies(sessions);
  const next = { ...any, policies, began: at, reported: at };
  return stopsIn({ sessions: [...sessions, next], started, judgedAt: at });
}
