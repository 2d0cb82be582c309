/**
 * Flushes counts to the ledger every few seconds, each time with a heartbeat, which tells a report
 * for which time its counts are complete, and which servers are silent.
 */

import { describeError } from "../server/log.ts";
import { repeat } from "../storage/background.ts";
import { addUp, type Heartbeat, type UsageRow } from "../storage/ledger.ts";
import type { RecorderOptions, UsageRecorder } from "../server/assembly.ts";
import { exportUsage } from "./metrics.ts";
import { UsageMeter } from "./meter.ts";

/** Milliseconds between two flushes: the most that a crash can lose. */
export const FLUSH_INTERVAL = 5_000;

/**
 * Milliseconds without a heartbeat after which a server counts as silent; without any server, after
 * which there is a gap. A server that was suspended for longer starts a new heartbeat record.
 */
export const HEARTBEAT_TIMEOUT = 60_000;

/** Retries of the last flush, and milliseconds between them, for brief storage faults. */
const [LAST_RETRIES, RETRY_DELAY] = [5, 200];

/** Clients of this many past days are known when a server starts. */
const KNOWN_DAYS = 7;

const DAY = 86_400_000;

/** The recorder of one server. */
export interface Recorder extends UsageRecorder {
  readonly meter: UsageMeter;
}

/** Registers the server in the ledger, and starts flushing. The timer lets the process exit. */
export async function recordUsage(options: RecorderOptions): Promise<Recorder> {
  const { ledger, config, routes, now, log } = options;
  const { usageDays: days, policy } = config;
  const metrics = config.isTelemetryOn ? await exportUsage({ routes, policy }) : undefined;
  const meter = new UsageMeter();
  const server = crypto.randomUUID();
  let backlog: UsageRow[] = []; // rows not flushed yet
  let from = now();
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
    for await (const { client } of ledger.usage(dayOf(now() - KNOWN_DAYS * DAY))) {
      meter.know(client);
    }
    knowsClients = true;
  }

  async function writeCounts(isLast: boolean): Promise<void> {
    let fault: unknown;
    if (!knowsClients) await knowClients().catch((error) => fault = error);
    const until = now();
    const heartbeat: Heartbeat = { server, from, until, ...(isLast ? { end: "stopped" } : {}) };
    const counted = meter.take(until);
    metrics?.add(counted);
    backlog = addUp([...backlog, ...counted]);
    await ledger.add(backlog, (added) => backlog = backlog.slice(added.length));
    await ledger.recordHeartbeat(heartbeat);
    const firstDay = dayOf(until - days * DAY);
    if (firstDay !== keptFrom) await ledger.forget(firstDay); // once a day
    keptFrom = firstDay;
    if (fault !== undefined) throw fault;
  }

  let last = attempt(() => ledger.recordHeartbeat({ server, from, until: from }));
  const flush = (isLast = false) => {
    const tick = now(); // when it was due, even if the previous flush is slow
    if (tick - lastTick > HEARTBEAT_TIMEOUT) from = tick;
    lastTick = tick;
    return last = last.then(() => attempt(() => writeCounts(isLast))); // one at a time
  };
  await last;
  const rest = repeat(FLUSH_INTERVAL, flush);
  const stop = async () => {
    rest();
    await flush(true);
    metrics?.end();
    for (let retry = 0; isFailing && retry < LAST_RETRIES; retry++) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY));
      await flush(true);
    }
  };
  return { meter, flush: () => flush(), stop };
}

function dayOf(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10);
}
