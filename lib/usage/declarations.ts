/** The operator's declaration that processes are gone. No record can show that. */

import { RefusedError } from "../input/refused_error.ts";
import { formatInstant } from "../http/timestamp.ts";
import type { Ledger } from "./ledger.ts";
import type { Session } from "./records.ts";
import { isSilent } from "./verdict.ts";

/**
 * Ends silent sessions at their last report: all or none.
 *
 * @returns These sessions. A session that had ended already is unchanged.
 * @throws {RefusedError} If a session is unknown or not silent.
 */
export async function declareGone(
  ledger: Pick<Ledger, "sessions" | "time" | "end">,
  ids: readonly string[],
): Promise<Session[]> {
  const known = new Map((await ledger.sessions()).map((session) => [session.id, session]));
  const time = await ledger.time();
  const sessions = ids.map((id): Session => {
    const session = known.get(id);
    if (session === undefined) {
      throw new RefusedError(
        `session "${id}" is not in the ledger; the gate names silent ones`,
      );
    }
    if (session.ended === undefined && !isSilent(session, time)) {
      const reported = formatInstant(session.reported);
      throw new RefusedError(
        `session "${id}" reported at ${reported}, expected one that has been silent for a minute: ` +
          "stop its process first",
      );
    }
    return { ...session, ended: session.ended ?? "gone" };
  });
  await ledger.end(ids);
  return sessions;
}
