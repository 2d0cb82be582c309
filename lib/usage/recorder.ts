/**
 * Flushes counts to the ledger every few seconds, each time with a heartbeat, from which a report
 * learns for what time the counts are complete, and which servers are silent.
 */

import type { Config } from "../server/config.ts";
import { formatInstant, momentAt } from "../lifecycle/policy.ts";
import { FaultLog, type Log } from "../server/log.ts";
import { type Policies, policyOf } from "../server/policies.ts";
import { repeat } from "../async/repeat.ts";
import { SerialQueue } from "../async/serial_queue.ts";
import { StorageError } from "../storage/errors.ts";
import {
  addUp,
  type Heartbeat,
  type LedgerTime,
  MAX_CLOCK_OFFSET_MS,
  type UsageRow,
} from "../storage/ledger/ledger.ts";
import type { Ledger } from "../storage/ledger/sql_ledger.ts";
import { contradictions } from "./dates.ts";
import { DAY_MS, dayOf } from "../storage/ledger/day.ts";
import { exportUsage, type UsageMetrics } from "./metrics.ts";
import { UsageMeter } from "./meter.ts";

/** Milliseconds between two flushes: the most that a crash can lose. */
export const FLUSH_INTERVAL_MS = 5_000;

/**
 * Milliseconds without a heartbeat after which an operator can declare a server gone; without any
 * server, after which there is a gap. A server that was suspended for longer starts a new record.
 */
export const HEARTBEAT_TIMEOUT_MS = 60_000;

/** How often the last flush is attempted, and milliseconds between attempts. */
const [STOP_TRIES, STOP_DELAY_MS] = [6, 200];

/** Clients of this many past days are known when a server starts. */
const KNOWN_DAYS = 7;

export interface RecorderOptions {
  readonly ledger: Omit<Ledger, "keptFrom">;
  readonly config:
    & Policies
    & Pick<Config, "usageDays" | "isTelemetryOn">
    & Partial<Pick<Config, "clientField">>;
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
  /** Returns the time in milliseconds since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
}

/**
 * Whether the next heartbeat extends the record; or begins a new one, because nothing was served for
 * a while; or begins one and leaves the old one without an end, because calls may be missing.
 */
type Continuity = "whole" | "suspended" | "broken";

type End = Pick<Heartbeat, "end">;

export class Recorder {
  readonly meter: UsageMeter;
  readonly #options: RecorderOptions;
  readonly #faults: FaultLog;
  readonly #queue = new SerialQueue(); // one flush at a time
  /** The server's record, as it is in the ledger. */
  #record: Heartbeat;
  #continuity: Continuity = "whole";
  /** Rows that are not in the ledger. */
  #backlog: UsageRow[] = [];
  #keptFrom = "";
  #lastTick: number;
  #metrics: UsageMetrics | undefined;
  #stopTimer = () => {};

  constructor(options: RecorderOptions) {
    const { config, routes } = options;
    this.meter = new UsageMeter(config.clientField);
    this.#options = options;
    const policies = Object.fromEntries(routes.map((path) => [path, policyOf(config, path)]));
    this.#record = { server: crypto.randomUUID(), policies, from: 0, until: 0 };
    this.#faults = new FaultLog(options.log);
    this.#lastTick = options.clock();
  }

  /** The server's name in the ledger. It changes if the server's last record is from the future. */
  get server(): string {
    return this.#record.server;
  }

  /**
   * Registers the server in the ledger, and starts flushing. The timer lets the process exit.
   *
   * @throws {StorageError} If the server cannot register: it would serve uncounted.
   */
  async start(): Promise<void> {
    const { ledger, config, clock, log } = this.#options;
    const { server, policies } = this.#record;
    const known = ledger.usage(dayOf(clock() - KNOWN_DAYS * DAY_MS));
    for await (const { client } of known) this.meter.know(client);
    if (config.isTelemetryOn) this.#metrics = await exportUsage(policies);
    await this.#begin(server, (await ledger.time()).now);
    for (const message of contradictions(policies, await ledger.heartbeats())) {
      log({ event: "warning", server, message });
    }
    this.#stopTimer = repeat(FLUSH_INTERVAL_MS, () => this.flush());
  }

  /** Flushes the counts so far. Never rejects: faults are logged, and the next flush retries. */
  flush(end: End = {}): Promise<void> {
    const tick = this.#options.clock(); // when it was due, even if the previous flush is slow
    const wasAway = tick - this.#lastTick > HEARTBEAT_TIMEOUT_MS;
    if (wasAway && this.#continuity === "whole") this.#continuity = "suspended";
    this.#logPhases(tick);
    this.#lastTick = tick;
    return this.#queue.run(() => this.#attempt(end));
  }

  /** Flushes the rest, and marks the server as stopped. */
  async stop(): Promise<void> {
    this.#stopTimer();
    for (let tries = 0; tries < STOP_TRIES; tries++) {
      await this.flush({ end: "stopped" });
      if (this.meter.fault === undefined) return;
      await new Promise((resolve) => setTimeout(resolve, STOP_DELAY_MS));
    }
  }

  /** Returns the number of calls that are not in the ledger. */
  unrecorded(): number {
    this.#takeCounts();
    return this.#backlog.reduce((sum, { calls }) => sum + calls, 0);
  }

  /** Logs each route whose phase has changed since the last tick. */
  #logPhases(instant: number): void {
    for (const [route, policy] of Object.entries(this.#record.policies)) {
      const { phase, until } = momentAt(policy, instant);
      if (phase === momentAt(policy, this.#lastTick).phase) continue;
      const next = until < Infinity ? { until: formatInstant(until) } : {};
      this.#options.log({ event: "phase", route, phase, ...next });
    }
  }

  async #attempt(end: End): Promise<void> {
    try {
      await this.#write(end);
      this.meter.fault = undefined;
    } catch (cause) {
      this.#faults.report(cause, { server: this.server, unrecorded: this.unrecorded() });
      const isClock = cause instanceof StorageError && cause.driver === CLOCK;
      this.meter.fault = `${isClock ? "a clock is wrong" : "the ledger fails"} (see the log)`;
    }
    this.#metrics?.setRecording(this.meter.fault === undefined);
  }

  #takeCounts(): void {
    const counted = this.meter.take(this.#options.clock());
    this.#metrics?.add(counted);
    this.#backlog = addUp([...this.#backlog, ...counted]);
  }

  async #write(end: End): Promise<void> {
    const { ledger, clock, log } = this.#options;
    // The heartbeat vouches for all calls before its time, so that is read before they are taken.
    const time = await ledger.time().finally(() => this.#takeCounts());
    const { now } = time;
    const off = clockFault(time, clock());
    if (off !== undefined) { // the ledger's time is the right one
      this.#continuity = "broken";
      const moment = { day: dayOf(now), first: now, last: now };
      this.#backlog = addUp(this.#backlog.map((row) => ({ ...row, ...moment })));
    }
    const isContinued = this.#continuity === "whole";
    const extension = { ...this.#record, until: now, known: this.#record.until, ...end };
    const isExtended = await ledger.add(
      this.#backlog,
      (added) => this.#backlog = this.#backlog.slice(added.length),
      isContinued ? extension : undefined,
    );
    if (off !== undefined) throw off;
    if (isExtended) this.#record = { ...this.#record, until: now };
    else {
      if (isContinued) {
        log({ event: "warning", server: this.server, message: LOST });
        this.#continuity = "broken";
      }
      await this.#beginAgain(now, end);
    }
    // A fault from here on must not end the record twice.
    if (end.end === undefined) await this.#forget(now);
  }

  async #begin(server: string, now: number, end: End = {}): Promise<void> {
    const record = { ...this.#record, server, from: now, until: now };
    await this.#options.ledger.recordHeartbeat({ ...record, ...end });
    this.#record = record;
  }

  /** Begins a new record. If the one before it has no end, calls may be missing. */
  async #beginAgain(now: number, end: End): Promise<void> {
    const last = this.#record;
    if (now >= last.from) await this.#begin(last.server, now, end);
    else { // a record from the future would still count as the latest of this server
      await this.#begin(crypto.randomUUID(), now, end);
      const message = `From now on, the ledger names this server ${this.server}`;
      this.#options.log({ event: "warning", server: last.server, message });
    }
    // Nothing was served during a suspension. The old record ends after the new one begins, so that
    // this server always has one.
    if (this.#continuity === "suspended") {
      const { until: known } = last;
      await this.#options.ledger.add([], () => {}, { ...last, known, end: "stopped" });
    }
    this.#continuity = "whole";
  }

  /** Deletes the days that are not retained, once a day. */
  async #forget(now: number): Promise<void> {
    const { ledger, config } = this.#options;
    const firstDay = dayOf(now - config.usageDays * DAY_MS);
    if (firstDay === this.#keptFrom) return;
    if (await ledger.forget(firstDay, now)) this.#keptFrom = firstDay;
  }
}

/** Returns a fault if this machine's clock differs from the ledger's. */
function clockFault({ now, latest }: LedgerTime, here: number): StorageError | undefined {
  const isAhead = latest - now > MAX_CLOCK_OFFSET_MS; // a server that reported from the future
  if (!isAhead && Math.abs(here - now) <= MAX_CLOCK_OFFSET_MS) return undefined;
  const [own, other] = [here, isAhead ? latest : now].map((time) => new Date(time).toJSON());
  const fault = isAhead ? `a server reported at ${other}` : `it is ${other} in the database`;
  const remedy = isAhead ? ", or declare that server gone (`deno task media usage`)" : "";
  return new StorageError(CLOCK, `${fault}, but ${own} here: correct the clock${remedy}`);
}

const CLOCK = "clock";

const LOST =
  "The ledger lacks this server's last report, as if it had been restored or replaced: " +
  "the gate is unknown for the time since that copy";
