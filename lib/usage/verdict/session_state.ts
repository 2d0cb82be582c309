/** The state of a session, by its last report: open, running, or ended. */

import { MINUTE_MS, type Session } from "../record/records.ts";

/** Returns whether a session has not ended. */
export function isOpen({ ended }: Pick<Session, "ended">): boolean {
  return ended === undefined;
}

/**
 * Returns whether a session is open, and reported less than a minute before an instant, or later.
 *
 * @param instant Milliseconds since the epoch.
 */
export function isRunning(session: Pick<Session, "ended" | "reported">, instant: number): boolean {
  return isOpen(session) && instant - session.reported < MINUTE_MS;
}
