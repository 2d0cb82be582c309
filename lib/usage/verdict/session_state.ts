/** The state of a session, by its last report: open, running, awaited, silent, or ended. */

import { type LedgerTime, MINUTE_MS, type Session } from "../record/records.ts";

/**
 * Returns whether a session has not ended.
 *
 * @param gone The ids of sessions that have ended, besides those on record.
 */
export function isOpen(
  { id, ended }: Pick<Session, "id" | "ended">,
  gone: readonly string[] = [],
): boolean {
  return ended === undefined && !gone.includes(id);
}

/**
 * Returns whether a session is open, and reported less than a minute before the latest report.
 *
 * @param latest The instant of the latest report of any session, in milliseconds since the epoch.
 */
export function isRunning(session: Session, latest: number): boolean {
  return isOpen(session) && latest - session.reported < MINUTE_MS;
}

/**
 * Returns whether an open session has yet to report the calls before the instant of the verdict.
 * The beginning of a session is no report.
 */
export function isAwaited(session: Session, judgedAt: number): boolean {
  const { began, reported } = session;
  return isOpen(session) && (reported <= judgedAt || reported === began);
}

/** Returns whether a session has been silent so long that its process can be declared gone. */
export function isSilent({ reported }: Pick<Session, "reported">, { now }: LedgerTime): boolean {
  return now - reported >= MINUTE_MS;
}

/**
 * Returns when a session that is not open had ended, by the ledger's time: at its last report, or
 * later if its process may have run on for a minute or more.
 *
 * Any clock may be wrong at times, so the time that passed until then is taken as the longer of two:
 * by the ledger's time, and by the machine's clock. If the ledger's time was ahead when the operator
 * said so, it may have been as far ahead when the process ended.
 */
export function endOf(
  session: Pick<Session, "reported" | "clock" | "restarted" | "endedBy" | "lead">,
): number {
  const { reported, clock, restarted, endedBy, lead = 0 } = session;
  if (endedBy === undefined) return reported;
  const byMachine = endedBy - clock;
  if (restarted !== undefined && byMachine <= 0) return reported; // nothing before it counts
  const since = restarted ?? reported;
  const passed = Math.max(byMachine, endedBy + lead - since);
  return passed < MINUTE_MS && restarted === undefined ? reported : since + passed;
}
