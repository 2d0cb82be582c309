/** The state of a session: whether it has mounted routes; and by its last report, open, running, or ended. */

import { MINUTE_MS, type Session } from "../record/records.ts";

/** Returns whether a session has not ended. */
export function isOpen({ ended }: Pick<Session, "ended">): boolean {
  return ended === undefined;
}

/** Returns whether a session has mounted any route. If not, it vouches for no time. */
export function hasMounted({ policies }: Pick<Session, "policies">): boolean {
  return Object.keys(policies).length > 0;
}

/**
 * Returns whether a session is open, and reported less than a minute before an instant, or later.
 *
 * @param instant Milliseconds since the epoch.
 */
export function isRunning(session: Pick<Session, "ended" | "reported">, instant: number): boolean {
  return isOpen(session) && instant - session.reported < MINUTE_MS;
}

/** Lists the sessions of running servers after all others. */
export function runningLast(sessions: readonly Session[]): Session[] {
  const latest = Math.max(...sessions.map(({ reported }) => reported));
  const others = sessions.filter((session) => !isRunning(session, latest));
  return [...others, ...sessions.filter((session) => isRunning(session, latest))];
}
