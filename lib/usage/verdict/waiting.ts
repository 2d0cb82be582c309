/** Waiting until servers have reported the calls before a verdict. */

import { FLUSH_INTERVAL_MS } from "../record/flush_schedule.ts";
import type { Ledger } from "../record/ledger.ts";
import { lagOf, type LedgerTime, MINUTE_MS, type Session } from "../record/records.ts";
import { isAwaited, isSilent } from "./session_state.ts";

/** Milliseconds between two checks for a server's report. */
const POLL_INTERVAL_MS = 200;

/**
 * Waits until every session has reported the calls before an instant, for at most two flushes after
 * the database's clock has reached the instant. Silent sessions are not awaited.
 *
 * @param time The times of the ledger at that instant.
 * @param onWait Called once with the sessions to wait for, if any.
 * @returns All sessions, in the order in which they began.
 */
export async function waitForReports(
  ledger: Pick<Ledger, "sessions" | "time">,
  time: LedgerTime,
  onWait: (sessions: readonly Session[]) => void,
): Promise<readonly Session[]> {
  const limit = lagOf(time) < MINUTE_MS ? lagOf(time) + 2 * FLUSH_INTERVAL_MS : 0;
  const deadline = performance.now() + limit;
  for (let isFirst = true;; isFirst = false) {
    const sessions = await ledger.sessions();
    const awaited = sessions.filter((each) => isAwaited(each, time.now) && !isSilent(each, time));
    if (awaited.length === 0 || performance.now() >= deadline) return sessions;
    if (isFirst) onWait(awaited);
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
