/**
 * `media usage --gone`: what an operator knows of a server that fell silent.
 */

import { formatInstant } from "../lifecycle/policy.ts";
import { silentServers } from "../usage/verdict.ts";
import { type Heartbeat, latestHeartbeats, type Ledger } from "../storage/ledger.ts";
import { RefusedError } from "../publishing/publish.ts";

/**
 * Marks servers as gone, all or none.
 *
 * @returns Their last watches.
 * @throws {RefusedError} When one is not known, or is not silent.
 */
export async function markGone(
  ledger: Pick<Ledger, "heartbeats" | "recordHeartbeat">,
  servers: readonly string[],
  now: number,
): Promise<Heartbeat[]> {
  const heartbeats = await ledger.heartbeats();
  const latest = latestHeartbeats(heartbeats);
  const silent = new Set(silentServers(heartbeats, now).map(({ server }) => server));
  const gone = servers.map((server): Heartbeat => {
    const heartbeat = latest.get(server);
    if (heartbeat === undefined) {
      throw new RefusedError(
        `server "${server}" is not in the ledger, expected one that \`media usage\` lists`,
      );
    }
    if (heartbeat.end === undefined && !silent.has(server)) {
      const since = formatInstant(heartbeat.until);
      throw new RefusedError(
        `server "${server}" was heard from at ${since}, expected one that is silent: stop it first`,
      );
    }
    return { ...heartbeat, end: heartbeat.end ?? "gone" };
  });
  for (const heartbeat of gone) await ledger.recordHeartbeat(heartbeat);
  return gone;
}
