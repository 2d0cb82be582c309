/** The rhythms of clients: who is silent, and for how long each client has to be. */

import { NO_USER_AGENT, OTHER } from "../../lifecycle/user_agent.ts";
import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import type { ClientHistory } from "../record/records.ts";

/** The fewest days with calls that show a rhythm. */
const MIN_DAYS = 3;

/** A client that has not called a route in the period, but before, and what is asked of it. */
export interface SilentClient extends ClientHistory {
  /** For how many whole days, and today, the client has to be silent. */
  readonly silence: number;
  /** The start of these days, in milliseconds since the epoch. */
  readonly since: number;
  /** The first day on which the client was, or will be, silent for so long, if it does not call. */
  readonly silentFrom: string;
}

/** The clients that have called a route, but not in the period. */
export interface SilentClients {
  /** Those whose last call is no longer ago than their longest pause; the latest first. */
  readonly due: readonly SilentClient[];
  /** All others; the latest first. */
  readonly earlier: readonly SilentClient[];
}

/**
 * Divides clients by whether they are due to call again.
 *
 * @param histories The histories of the clients that have not called in the period.
 */
export function silentClients(
  histories: readonly ClientHistory[],
  { now, days, isByRhythm, retainDays }: {
    /** Milliseconds since the epoch. */
    readonly now: number;
    /** The number of whole days in the period. */
    readonly days: number;
    /** Whether each client has to be silent for its longest pause, if that is longer. */
    readonly isByRhythm: boolean;
    /** The number of whole days that servers retain, if known. */
    readonly retainDays: number | undefined;
  },
): SilentClients {
  const startOf = (ago: number) => Date.parse(dayOf(now - ago * DAY_MS));
  const clients = histories.map((history): SilentClient => {
    const silence = isByRhythm ? Math.max(days, rhythmOf(history) ?? 0) : days;
    // What happened before the days retained is not on record any more, except the calls themselves.
    const since = startOf(Math.max(days, Math.min(silence, retainDays ?? silence)));
    const silentFrom = dayOf(Date.parse(history.last) + (silence + 1) * DAY_MS);
    return { ...history, silence, since, silentFrom };
  }).sort((a, b) => a.last < b.last ? 1 : a.last > b.last ? -1 : a.client < b.client ? -1 : 1);
  const isDue = ({ last, silence }: SilentClient) => Date.parse(last) >= startOf(silence);
  return {
    due: clients.filter(isDue),
    earlier: clients.filter((client) => !isDue(client)),
  };
}

/**
 * Returns the rhythm of a client: its longest pause, in days. Two days show none, and a name that may
 * be anybody's has none.
 */
function rhythmOf({ client, days, pause }: ClientHistory): number | undefined {
  return days < MIN_DAYS || mayBeAnybody(client) ? undefined : pause;
}

/** Returns whether a name is not that of one client. */
export function mayBeAnybody(client: string): boolean {
  return client === OTHER || client === NO_USER_AGENT;
}

/**
 * Returns the longest rhythm that a record is sure to show, in days: a client with a longer one may
 * not have called on {@linkcode MIN_DAYS} days.
 *
 * @param age How far the record goes back, in milliseconds.
 */
export function longestShown(age: number): number {
  return Math.max(0, Math.floor(age / DAY_MS / MIN_DAYS));
}

/**
 * Merges the histories of several records. Where two have the same client, some of its days may be in
 * both, so there are at most as many days as their sum, and its pauses are at most the longest of both
 * and the one between them.
 */
export function mergedHistories(
  records: readonly (readonly ClientHistory[])[],
): readonly ClientHistory[] {
  const [first = [], ...others] = records;
  if (others.length === 0) return first;
  const merged = new Map<string, ClientHistory>();
  for (const history of records.flat()) {
    const key = `${history.route}\0${history.client}`;
    const other = merged.get(key);
    merged.set(key, other === undefined ? history : union(other, history));
  }
  return [...merged.values()];
}

function union(a: ClientHistory, b: ClientHistory): ClientHistory {
  const [earlier, later] = a.last < b.last ? [a, b] : [b, a];
  const between = (Date.parse(later.first) - Date.parse(earlier.last)) / DAY_MS;
  const isSameDay = earlier.last === later.last;
  return {
    ...later,
    calls: a.calls + b.calls,
    days: a.days + b.days,
    first: a.first < b.first ? a.first : b.first,
    lastCalls: later.lastCalls + (isSameDay ? earlier.lastCalls : 0),
    pause: Math.max(a.pause ?? 0, b.pause ?? 0, between) || undefined,
  };
}
