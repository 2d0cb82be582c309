/** The operator's declaration that processes have ended. No record can show that. */

import { RefusedError } from "../../errors/refused_error.ts";
import { formatInstant } from "../../http/timestamp.ts";
import type { Ledger } from "../record/ledger.ts";
import { MINUTE_MS, type Session } from "../record/records.ts";
import { sessionText } from "../record/session_name.ts";
import { isOpen, isSilent } from "./session_state.ts";

/**
 * Ends silent sessions: all or none.
 *
 * @param endedBy When their processes had ended, in milliseconds since the epoch.
 * @param operatorClock Returns the time by the operator's clock, in milliseconds since the epoch.
 * @returns These sessions. A session that had ended already is unchanged.
 * @throws {RefusedError} If a session is unknown or not silent, or reported after that time.
 */
export async function declareGone(
  ledger: Pick<Ledger, "sessions" | "time" | "end">,
  ids: readonly string[],
  endedBy: number,
  operatorClock: () => number = Date.now,
): Promise<Session[]> {
  const known = new Map((await ledger.sessions()).map((session) => [session.id, session]));
  const time = await ledger.time();
  const lead = Math.max(0, time.now - operatorClock());
  const sessions = ids.map((id): Session => {
    const session = known.get(id);
    if (session === undefined) {
      throw new RefusedError(
        `session "${id}" is not in the ledger; the gate names silent ones`,
      );
    }
    if (!isOpen(session)) return session;
    const { reported, clock, restarted } = session;
    if (!isSilent(session, time)) {
      throw new RefusedError(
        `${sessionText(session)} reported at ${formatInstant(reported)}, expected one that has ` +
          "been silent for a minute: if its process has ended, say so a minute later",
      );
    }
    if (restarted === undefined && clock - endedBy >= MINUTE_MS) {
      throw new RefusedError(
        `${sessionText(session)} reported when its machine's clock was at ` +
          `${formatInstant(clock)}, expected a time after that, got ${formatInstant(endedBy)}: ` +
          "correct the time, or, if that clock was wrong, run --restart first",
      );
    }
    return { ...session, ended: "gone", endedBy, lead };
  });
  await ledger.end(ids, endedBy, lead);
  return sessions;
}
