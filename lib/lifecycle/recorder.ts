/**
 * Hands counts to the ledger every few seconds, and marks how far it has come, so that a gap in
 * the record can be told from a time without calls.
 */

import { describeError, type Log } from "../log.ts";
import type { Ledger, Usage } from "../storage/ledger.ts";
import type { Config } from "../config.ts";
import { exportUsage } from "./metrics.ts";
import { addUp, UsageMeter } from "./usage.ts";

/** Milliseconds between two hand-overs, and so what a crash can lose. */
export const INTERVAL = 5_000;

/** Milliseconds until the first hand-over, which is not to hold up the first answers. */
const FIRST = 500;

/**
 * Milliseconds without a sign of life after which a server was not counting: it was restarted, or
 * the machine slept.
 */
export const GAP = 60_000;

const DAY = 86_400_000;

/** What a record is kept with. */
export interface RecordOptions {
  readonly ledger: Pick<Ledger, "add" | "beat" | "forget">;
  readonly config: Pick<Config, "usageDays" | "isTelemetryOn" | "policy">;
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
}

/** The record of one server, under way. */
export interface UsageRecord {
  readonly meter: UsageMeter;
  /** Hands over what was counted so far. Never rejects: faults are logged, and tried again. */
  readonly record: () => Promise<void>;
  /** Hands over the rest, and ends the record. */
  readonly stop: () => Promise<void>;
}

/** Begins a record. Its timer keeps no process up. */
export async function recordUsage(options: RecordOptions): Promise<UsageRecord> {
  const { ledger, config, routes, now, log } = options;
  const { usageDays: days, policy } = config;
  const metrics = config.isTelemetryOn ? await exportUsage({ routes, policy }) : undefined;
  const meter = new UsageMeter();
  let backlog: Usage[] = []; // what could not be handed over
  const server = crypto.randomUUID();
  let from = now();
  let lastSign = from;
  let forgottenBefore = "";
  let isFailing = false;

  async function handOver(): Promise<void> {
    const until = now();
    if (until - lastSign > GAP) from = until;
    lastSign = until;
    const counted = meter.take();
    metrics?.(counted);
    let left = addUp([...backlog, ...counted]);
    try {
      await ledger.add(left, (added) => left = left.slice(added.length));
      await ledger.beat({ server, from, until }, days * DAY);
      const firstDay = new Date(until - days * DAY).toISOString().slice(0, 10);
      if (firstDay !== forgottenBefore) await ledger.forget(firstDay); // once a day
      forgottenBefore = firstDay;
      isFailing = false;
    } catch (error) {
      if (!isFailing) log({ event: "error", cause: describeError(error) });
      isFailing = true; // said once; what is counted meanwhile is handed over later
    }
    backlog = left;
  }

  let last = Promise.resolve();
  const record = () => last = last.then(handOver); // one at a time
  const timers = [setTimeout(record, FIRST), setInterval(record, INTERVAL)];
  timers.forEach(Deno.unrefTimer);
  const stop = async () => {
    timers.forEach(clearTimeout);
    await record();
  };
  return { meter, record, stop };
}
