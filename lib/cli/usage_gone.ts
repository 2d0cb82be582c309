/** `media usage --gone` */

import { formatInstant } from "../lifecycle/policy.ts";
import { isAhead } from "../report/verdict.ts";
import { type Heartbeat, latestHeartbeats, MAX_CLOCK_OFFSET_MS } from "../storage/ledger/ledger.ts";
import type { Ledger } from "../storage/ledger/sql_ledger.ts";
import { HEARTBEAT_TIMEOUT_MS } from "../usage/recorder.ts";
import { RefusedError } from "../input/refused_error.ts";

/**
 * Marks silent servers as gone, all or none.
 *
 * @throws {RefusedError} If a server is unknown or not silent.
 */
export async function markGone(
  ledger: Pick<Ledger, "heartbeats" | "recordHeartbeat">,
  servers: readonly string[],
  now: number,
): Promise<Heartbeat[]> {
  const heartbeats = await ledger.heartbeats();
  const latest = latestHeartbeats(heartbeats);
  const gone = servers.map((server): Heartbeat => {
    const heartbeat = latest.get(server);
    if (heartbeat === undefined) {
      throw new RefusedError(
        `server "${server}" is not in the ledger, expected one that \`media usage\` lists`,
      );
    }
    if (isAhead(heartbeat, now + MAX_CLOCK_OFFSET_MS)) return { ...heartbeat, end: "gone" };
    if (heartbeat.end === undefined && now - heartbeat.until <= HEARTBEAT_TIMEOUT_MS) {
      const since = formatInstant(heartbeat.until);
      throw new RefusedError(
        `server "${server}" sent a heartbeat at ${since}, expected a silent server: stop it first`,
      );
    }
    return { ...heartbeat, end: heartbeat.end ?? "gone" };
  });
  for (const heartbeat of gone) await ledger.recordHeartbeat(heartbeat);
  return gone;
}
