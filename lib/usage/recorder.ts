/**
 * Flushes counts to the ledger every few seconds, each time with a heartbeat, which tells a report
 * for which time its counts are complete, and which servers are silent.
 */

import type { Config } from "../server/config.ts";
import { FaultLog, type Log } from "../server/log.ts";
import { repeat } from "../async/repeat.ts";
import { StorageError } from "../storage/errors.ts";
import {
  addUp,
  type LedgerTime,
  MAX_CLOCK_OFFSET_MS,
  type UsageRow,
} from "../storage/ledger/ledger.ts";
import type { Ledger } from "../storage/ledger/sql_ledger.ts";
import { DAY_MS, dayOf } from "./day.ts";
import { exportUsage } from "./metrics.ts";
import { UsageMeter } from "./meter.ts";

/** Milliseconds between two flushes: the most that a crash can lose. */
export const FLUSH_INTERVAL_MS = 5_000;

/** Flushes in a row that fail, or milliseconds without one, before the server is unhealthy. */
const [MAX_FAILURES, MAX_SILENCE_MS] = [3, 20_000];

/**
 * Milliseconds without a heartbeat after which an operator can declare a server gone; without any
 * server, after which there is a gap. A server that was suspended for longer starts a new record.
 */
export const HEARTBEAT_TIMEOUT_MS = 60_000;

/** Retries of the registration and the last flush, and milliseconds between them. */
const [RETRIES, RETRY_DELAY_MS] = [5, 200];

/** Clients of this many past days are known when a server starts. */
const KNOWN_DAYS = 7;

/** What recording depends on. */
export interface RecorderOptions {
  readonly ledger: Omit<Ledger, "heartbeats" | "keptFrom">;
  readonly config: Pick<Config, "usageDays" | "isTelemetryOn" | "policy" | "clientField">;
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
  /** Returns the number of calls that are not in the ledger, once nothing is served any more. */
  readonly unrecorded: () => number;
}

/**
 * Registers the server in the ledger, and starts flushing. The timer lets the process exit.
 *
 * @throws {StorageError} If the server cannot register: it would serve uncounted.
 */
export async function recordUsage(options: RecorderOptions): Promise<Recorder> {
  const { ledger, config, routes, clock, log } = options;
  const { usageDays: days, policy } = config;
  const addToMetrics = config.isTelemetryOn ? await exportUsage({ routes, policy }) : undefined;
  const meter = new UsageMeter(config.clientField);
  let server: string = crypto.randomUUID();
  let backlog: UsageRow[] = []; // rows not flushed yet
  let from = 0; // of the record in the ledger, as is `until`
  let until = 0;
  let lastTick = clock();
  let wasSuspended = false;
  /** Whether calls may be missing from the record, so that it cannot go on. */
  let mustBegin = false;
  let knowsClients = false;
  let keptFrom = "";
  let failures = 0;
  let succeededAt = performance.now();
  const faults = new FaultLog(log);

  /** Keeps a fault for the log and the health check; the next flush retries. */
  async function attempt(action: () => Promise<void>): Promise<void> {
    try {
      await action();
      failures = 0;
      meter.fault = undefined;
      succeededAt = performance.now();
    } catch (cause) {
      faults.report(cause, { server, unrecorded: sumOf(backlog) });
      if (++failures >= MAX_FAILURES) {
        meter.fault = new StorageError("ledger", UNWRITTEN, { cause });
      }
    }
  }

  async function knowClients(): Promise<void> {
    for await (const { client } of ledger.usage(dayOf(clock() - KNOWN_DAYS * DAY_MS))) {
      meter.know(client);
    }
    knowsClients = true;
  }

  function takeCounts(): void {
    const counted = meter.take(clock());
    addToMetrics?.(counted);
    backlog = addUp([...backlog, ...counted]);
  }

  async function begin(now: number, end: { readonly end?: "stopped" } = {}): Promise<void> {
    await ledger.recordHeartbeat({ server, from: now, until: now, ...end });
    from = until = now;
  }

  async function writeCounts(isLast: boolean): Promise<void> {
    let fault: unknown;
    if (!knowsClients) await knowClients().catch((error) => fault = error);
    // The time vouches for the counts, so it is asked before they are taken.
    const time = await ledger.time().finally(takeCounts);
    const { now } = time;
    const off = clockFault(time);
    if (off !== undefined) { // the ledger's time is the right one
      mustBegin = true;
      backlog = addUp(backlog.map((row) => ({ ...row, day: dayOf(now), first: now, last: now })));
    }
    const end = isLast ? { end: "stopped" } as const : {};
    const isContinued = !mustBegin && !wasSuspended;
    const isExtended = await ledger.add(
      backlog,
      (added) => backlog = backlog.slice(added.length),
      isContinued ? { server, from, until: now, known: until, ...end } : undefined,
    );
    if (off !== undefined) throw off;
    if (isExtended) until = now;
    else {
      if (isContinued) log({ event: "warning", server, message: LOST });
      mustBegin ||= isContinued;
      await beginAgain(now, end);
    }
    if (isLast) return; // a fault in what follows must not end the record twice
    const firstDay = dayOf(now - days * DAY_MS);
    if (firstDay !== keptFrom && await ledger.forget(firstDay, now)) keptFrom = firstDay;
    if (fault !== undefined) throw fault;
  }

  /** Begins a new record. One without an end before it says that calls may be missing. */
  async function beginAgain(now: number, end: { readonly end?: "stopped" }): Promise<void> {
    const last = { server, from, until, known: until, end: "stopped" } as const;
    if (now < from) { // a record from the future must not pass for the last one of this server
      const old = server;
      server = crypto.randomUUID();
      log({ event: "warning", server: old, message: `It is ${server} in the ledger from now on` });
    }
    await begin(now, end);
    // Nothing was served during a suspension. The old record ends only now, or for a moment this
    // server would have none.
    if (wasSuspended && !mustBegin) await ledger.extendHeartbeat(last);
    wasSuspended = mustBegin = false;
  }

  /** Returns a fault if this machine's clock is not the ledger's. */
  function clockFault({ now, latest }: LedgerTime): StorageError | undefined {
    const instant = clock();
    const isAhead = latest - now > MAX_CLOCK_OFFSET_MS; // a server that reported from the future
    if (!isAhead && Math.abs(instant - now) <= MAX_CLOCK_OFFSET_MS) return undefined;
    const [here, there] = [instant, isAhead ? latest : now].map((time) => new Date(time).toJSON());
    const fault = isAhead ? `a server reported at ${there}` : `it is ${there} in the database`;
    const remedy = isAhead ? ", or declare that server gone (`deno task media usage`)" : "";
    return new StorageError("ledger", `${fault}, but ${here} here: correct the clock${remedy}`);
  }

  let first: number | undefined;
  for (let retry = 0;; retry++) {
    try {
      first ??= (await ledger.time()).now; // the same each time, in case a commit got lost
      await begin(first);
      break;
    } catch (error) {
      if (retry === RETRIES) throw error;
      await pause(RETRY_DELAY_MS);
    }
  }
  let last = Promise.resolve();
  const flush = (isLast = false) => {
    const tick = clock(); // when it was due, even if the previous flush is slow
    if (tick - lastTick > HEARTBEAT_TIMEOUT_MS) wasSuspended = true;
    lastTick = tick;
    const silence = wasSuspended ? 0 : performance.now() - succeededAt;
    if (failures === 0 && silence > MAX_SILENCE_MS) { // the last one hangs
      meter.fault = new StorageError("ledger", UNWRITTEN);
      faults.report(meter.fault, { server, unrecorded: sumOf(backlog) });
    }
    return last = last.then(() => attempt(() => writeCounts(isLast))); // one at a time
  };
  const rest = repeat(FLUSH_INTERVAL_MS, flush);
  const stop = async () => {
    rest();
    await flush(true);
    for (let retry = 0; failures > 0 && retry < RETRIES; retry++) {
      await pause(RETRY_DELAY_MS);
      await flush(true);
    }
  };
  const unrecorded = () => {
    takeCounts();
    return sumOf(backlog);
  };
  return { meter, server, flush: () => flush(), stop, unrecorded };
}

const UNWRITTEN = "calls cannot be recorded";

const LOST =
  "The ledger lacks this server's last report, as if it had been restored or replaced: " +
  "the gate is unknown for the time since that copy";

function sumOf(rows: readonly UsageRow[]): number {
  return rows.reduce((sum, { calls }) => sum + calls, 0);
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
