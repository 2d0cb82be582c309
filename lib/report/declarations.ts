/** What the operator declares, because no record shows it: that servers are gone, or a restore. */

import { RefusedError } from "../input/refused_error.ts";
import { formatInstant, type Interval } from "../lifecycle/policy.ts";
import {
  type Heartbeat,
  latestHeartbeats,
  MAX_CLOCK_OFFSET_MS,
} from "../storage/ledger/records.ts";
import type { Ledger } from "../storage/ledger/ledger.ts";
import { HEARTBEAT_TIMEOUT_MS } from "../usage/recorder.ts";
import { isAhead, running } from "./verdict.ts";

/** The beginning of the names of heartbeats that stand for a restored backup. */
export const RESTORED = "restored at ";

/**
 * Declares silent servers gone, all or none.
 *
 * @param now Milliseconds since the epoch, by the ledger's clock.
 * @returns The heartbeats of these servers. A heartbeat that has an end keeps it.
 * @throws {RefusedError} If a server is unknown or not silent.
 */
export async function declareGone(
  ledger: Ledger,
  servers: readonly string[],
  now: number,
): Promise<Heartbeat[]> {
  const latest = latestHeartbeats(await ledger.heartbeats());
  const silent = servers.map((server): Heartbeat => {
    const heartbeat = latest.get(server);
    if (heartbeat === undefined) {
      throw new RefusedError(
        `server "${server}" is not in the ledger, expected one that \`media usage\` lists`,
      );
    }
    const isSilent = now - heartbeat.until > HEARTBEAT_TIMEOUT_MS ||
      isAhead(heartbeat, now + MAX_CLOCK_OFFSET_MS);
    if (heartbeat.end === undefined && !isSilent) {
      const since = formatInstant(heartbeat.until);
      throw new RefusedError(
        `server "${server}" sent a heartbeat at ${since}, expected a silent server: stop it first`,
      );
    }
    return heartbeat.end === undefined ? goneAt(now, heartbeat) : heartbeat;
  });
  await ledger.declare([], silent);
  return silent;
}

/**
 * Declares that the ledger was restored from a backup, so that what was counted after the backup
 * may be missing. Adds a heartbeat without an end at the latest time in the backup, and a heartbeat
 * of the same name now. Also ends the heartbeats of servers that were running when the backup was
 * made, for which the gate would wait for ever. Servers that had been silent for longer stay
 * silent.
 *
 * @param now Milliseconds since the epoch, by the ledger's clock.
 * @param backup When the backup was made; now, if no server has started since the restore.
 * @returns The interval for which calls may be missing; `undefined` if no server ever counted.
 * @throws {RefusedError} If a server may have started since, or if none had registered by that time.
 */
export async function declareRestored(
  ledger: Ledger,
  now: number,
  backup: number,
): Promise<Interval | undefined> {
  const heartbeats = await ledger.heartbeats();
  const [first] = heartbeats;
  if (first === undefined) return undefined;
  const copied = heartbeats.filter(({ from, until }) => from <= backup && until < now);
  const last = copied.sort((a, b) => a.until - b.until).at(-1);
  if (last === undefined) {
    const [given, registered] = [backup, first.from].map(formatInstant);
    throw new RefusedError(
      `the backup is of ${given}, expected a time after the first server registered, ${registered}`,
    );
  }
  const open = running(heartbeats).filter(({ from, until }) => from <= backup && until <= now);
  const recent = open.find(({ until }) => until > now - HEARTBEAT_TIMEOUT_MS);
  if (recent !== undefined) {
    throw new RefusedError(
      `server "${recent.server}" sent a heartbeat at ${
        formatInstant(recent.until)
      }, expected none ` +
        "within a minute: if it is running, give the time of the backup, as --restored TIME; if that " +
        "heartbeat came with the backup, wait for a minute",
    );
  }
  const start = Math.min(last.until, backup); // those of a hot backup may be a little later
  const ended = open.filter(({ until }) => until >= start - HEARTBEAT_TIMEOUT_MS)
    .map((heartbeat) => goneAt(now, heartbeat));
  const server = RESTORED + new Date(now).toISOString();
  const heartbeat = { server, policies: last.policies, sequence: 0 };
  const begun: Heartbeat[] = [
    { ...heartbeat, from: start, until: start },
    { ...heartbeat, from: now, until: now, end: "stopped" },
  ];
  await ledger.declare(begun, ended);
  return { start, end: now };
}

function goneAt(now: number, heartbeat: Heartbeat): Heartbeat {
  return { ...heartbeat, end: "gone", declaredAt: now };
}
