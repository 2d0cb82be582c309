/**
 * Flushes counts to the ledger every few seconds, each time with a heartbeat, which tells a report
 * for which time its counts are complete, and which servers are silent.
 */

import type { Config } from "../server/config.ts";
import { describeError, type Log } from "../server/log.ts";
import { repeat } from "../async/repeat.ts";
import { addUp, type Heartbeat, type Ledger, type UsageRow } from "../storage/ledger/ledger.ts";
import { DAY_MS, dayOf } from "./day.ts";
import { exportUsage } from "./metrics.ts";
import { UsageMeter } from "./meter.ts";

/** Milliseconds between two flushes: the most that a crash can lose. */
export const FLUSH_INTERVAL_MS = 5_000;

/**
 * Milliseconds without a heartbeat after which a server counts as silent; without any server, after
 * which there is a gap. A server that was suspended for longer starts a new heartbeat record.
 */
export const HEARTBEAT_TIMEOUT_MS = 60_000;

/** Retries of the registration and the last flush, and milliseconds between them. */
const [RETRIES, RETRY_DELAY_MS] = [5, 200];

/** Clients of this many past days are known when a server starts. */
const KNOWN_DAYS = 7;

/** What recording depends on. */
export interface RecorderOptions {
  readonly ledger: Pick<Ledger, "add" | "recordHeartbeat" | "forget" | "usage">;
  readonly config: Pick<Config, "usageDays" | "isTelemetryOn" | "policy">;
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
  /** Returns the time in milliseconds since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
}

/** The recorder of one server. */
export interface Recorder {
  readonly meter: UsageMeter;
  /** The server's name in the ledger. */
  readonly server: string;
  /** Flushes the counts so far. Never rejects: faults are logged, and the next flush retries. */
  readonly flush: () => Promise<void>;
  /** Flushes the rest, and marks the server as stopped. */
  readonly stop: () => Promise<void>;
}

/**
 * Registers the server in the ledger, and starts flushing. The timer lets the process exit.
 *
 * @throws {StorageError} If the server cannot register: it would serve uncounted.
 */
export async function recordUsage(options: RecorderOptions): Promise<Recorder> {
  const { ledger, config, routes, clock, log } = options;
  const { usageDays: days, policy } = config;
  const metrics = config.isTelemetryOn ? await exportUsage({ routes, policy }) : undefined;
  const meter = new UsageMeter();
  const server = crypto.randomUUID();
  let backlog: UsageRow[] = []; // rows not flushed yet
  let from = clock();
  let lastTick = from;
  let knowsClients = false;
  let keptFrom = "";
  let isFailing = false;

  /** Logs only the first fault of an outage; the next flush retries. */
  async function attempt(action: () => Promise<void>): Promise<void> {
    try {
      await action();
      isFailing = false;
    } catch (error) {
      if (!isFailing) log({ event: "error", server, cause: describeError(error) });
      isFailing = true;
    }
  }

  async function knowClients(): Promise<void> {
    for await (const { client } of ledger.usage(dayOf(clock() - KNOWN_DAYS * DAY_MS))) {
      meter.know(client);
    }
    knowsClients = true;
  }

  async function writeCounts(isLast: boolean): Promise<void> {
    let fault: unknown;
    if (!knowsClients) await knowClients().catch((error) => fault = error);
    const until = clock();
    const heartbeat: Heartbeat = { server, from, until, ...(isLast ? { end: "stopped" } : {}) };
    const counted = meter.take(until);
    metrics?.add(counted);
    backlog = addUp([...backlog, ...counted]);
    await ledger.add(backlog, (added) => backlog = backlog.slice(added.length));
    await ledger.recordHeartbeat(heartbeat);
    const firstDay = dayOf(until - days * DAY_MS);
    if (firstDay !== keptFrom) await ledger.forget(firstDay); // once a day
    keptFrom = firstDay;
    if (fault !== undefined) throw fault;
  }

  for (let retry = 0;; retry++) {
    try {
      await ledger.recordHeartbeat({ server, from, until: from });
      break;
    } catch (error) {
      if (retry === RETRIES) throw error;
      await pause(RETRY_DELAY_MS);
    }
  }
  let last = Promise.resolve();
  const flush = (isLast = false) => {
    const tick = clock(); // when it was due, even if the previous flush is slow
    if (tick - lastTick > HEARTBEAT_TIMEOUT_MS) from = tick;
    lastTick = tick;
    return last = last.then(() => attempt(() => writeCounts(isLast))); // one at a time
  };
  const rest = repeat(FLUSH_INTERVAL_MS, flush);
  const stop = async () => {
    rest();
    await flush(true);
    metrics?.end();
    for (let retry = 0; isFailing && retry < RETRIES; retry++) {
      await pause(RETRY_DELAY_MS);
      await flush(true);
    }
  };
  return { meter, server, flush: () => flush(), stop };
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
