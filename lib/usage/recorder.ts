/**
 * Flushes counts to the ledger every few seconds, each time with a heartbeat, from which a report
 * learns for what time the counts are complete, and which servers are silent.
 */

import type { Config } from "../server/config.ts";
import { formatInstant, momentAt } from "../lifecycle/policy.ts";
import { FaultLog, type Log } from "../server/log.ts";
import { type Policies, policyOf } from "../server/policies.ts";
import { SerialQueue } from "../async/serial_queue.ts";
import { RejectedError, StorageError } from "../storage/errors.ts";
import {
  dateRows,
  type FlushPart,
  type Heartbeat,
  isRelease,
  latestHeartbeats,
  type LedgerRow,
  type LedgerTime,
  MAX_CLOCK_OFFSET_MS,
  MAX_PART_ROWS,
  mergeRows,
} from "../storage/ledger/records.ts";
import type { Ledger } from "../storage/ledger/ledger.ts";
import { yieldToRequests } from "../async/yield.ts";
import { contradictions } from "./dates.ts";
import { DAY_MS, dayOf } from "../storage/ledger/day.ts";
import { exportUsage, type UsageMetrics } from "./metrics.ts";
import { OTHER } from "../http/client_name.ts";
import { UsageMeter } from "./meter.ts";

/** Milliseconds between two flushes: the most that a crash can lose. */
export const FLUSH_INTERVAL_MS = 5_000;

/**
 * Milliseconds without a heartbeat after which an operator can declare a server gone; without any
 * server, after which there is a gap. A server that was suspended for longer begins a new heartbeat.
 */
export const HEARTBEAT_TIMEOUT_MS = 60_000;

/** How often the last flush is attempted, and milliseconds between attempts. */
const [STOP_TRIES, STOP_DELAY_MS] = [6, 200];

/** Clients of this many past days are known when a server starts. */
const KNOWN_DAYS = 7;

export interface RecorderOptions {
  readonly ledger: Omit<Ledger, "keptFrom" | "releases">;
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

type End = Pick<FlushPart, "end">;

export class Recorder {
  readonly meter: UsageMeter;
  readonly #options: RecorderOptions;
  readonly #faults: FaultLog;
  readonly #queue = new SerialQueue(); // one flush at a time
  /** The server's heartbeat, as this process last knew it to be in the ledger. */
  #own: Heartbeat;
  /** The first heartbeat under the server's name. */
  #first: Heartbeat;
  /** The ledger's time at the last flush. */
  #flushedAt: number | undefined;
  /** How often the process was suspended, and so served nothing; and how often that was recorded. */
  #suspensions = 0;
  #recordedSuspensions = 0;
  /** The part of a flush that was sent, until it is known whether it was committed. */
  #sent: FlushPart | undefined;
  /** Rows that were not sent. */
  #backlog: LedgerRow[] = [];
  #keptFrom = "";
  #lastTick: number;
  #metrics: UsageMetrics | undefined;
  #stopTimer = () => {};

  constructor(options: RecorderOptions) {
    const { config, routes } = options;
    this.meter = new UsageMeter(config.clientField);
    this.#options = options;
    const policies = Object.fromEntries(routes.map((path) => [path, policyOf(config, path)]));
    this.#own = { server: crypto.randomUUID(), policies, from: 0, until: 0, sequence: 0 };
    this.#first = this.#own;
    this.#faults = new FaultLog(options.log);
    this.#lastTick = options.clock();
  }

  /** The server's name in the ledger. It changes if its last heartbeat is from the future. */
  get server(): string {
    return this.#own.server;
  }

  /**
   * Registers the server in the ledger, and starts flushing. The timer lets the process exit.
   *
   * @throws {StorageError} If the server cannot register: it would serve uncounted.
   */
  async start(): Promise<void> {
    const { ledger, config, clock, log } = this.#options;
    const { server, policies } = this.#own;
    const known = ledger.usage(dayOf(clock() - KNOWN_DAYS * DAY_MS));
    for await (const { client } of known) this.meter.know(client);
    if (config.isTelemetryOn) this.#metrics = await exportUsage(policies);
    const { now } = await ledger.time();
    this.#first = this.#own = { ...this.#own, from: now, until: now };
    await ledger.declare([this.#own]);
    for (const message of contradictions(policies, await ledger.heartbeats())) {
      log({ event: "warning", server, message });
    }
    const timer = setInterval(() => this.flush(), FLUSH_INTERVAL_MS);
    Deno.unrefTimer(timer);
    this.#stopTimer = () => clearInterval(timer);
  }

  /** Flushes the counts so far. Never rejects: faults are logged, and the next flush retries. */
  flush(end: End = {}): Promise<void> {
    const tick = this.#options.clock(); // when it was due, even if the previous flush is slow
    if (tick - this.#lastTick > HEARTBEAT_TIMEOUT_MS) this.#suspensions++;
    this.#logPhases(tick);
    this.#lastTick = tick;
    return this.#queue.run(() => this.#attempt(end));
  }

  /** Flushes the rest, and marks the server as stopped. Call it once nothing is answered any more. */
  async stop(): Promise<void> {
    this.#stopTimer();
    this.#takeCounts();
    for (let tries = 0; tries < STOP_TRIES; tries++) {
      await this.flush({ end: "stopped" });
      if (this.meter.fault === undefined) return;
      await new Promise((resolve) => setTimeout(resolve, STOP_DELAY_MS));
    }
  }

  /** Returns the number of calls that were taken from the meter, and may not be in the ledger. */
  unrecorded(): number {
    const rows = [...this.#sent?.rows ?? [], ...this.#backlog];
    return rows.reduce((sum, row) => sum + (isRelease(row) ? 0 : row.calls), 0);
  }

  /** Logs each route whose phase has changed since the last tick. */
  #logPhases(instant: number): void {
    for (const [route, policy] of Object.entries(this.#own.policies)) {
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
    const { rows, releases } = this.meter.take(this.#options.clock());
    this.#metrics?.add(rows);
    this.#backlog = mergeRows([...this.#backlog, ...rows, ...releases]);
  }

  async #write(end: End): Promise<void> {
    const { ledger, clock } = this.#options;
    const suspensions = this.#suspensions; // before the time is read
    const wasSuspended = suspensions > this.#recordedSuspensions;
    // The heartbeat vouches for all calls before its time, so that is read before they are taken.
    const time = await ledger.time().finally(() => this.#takeCounts());
    const { now, latest } = time;
    const off = clockFault(time, clock());
    const flushedAt = this.#flushedAt ?? latest;
    // While the ledger's clock is set back, no call can be dated: the rows wait.
    if (off !== undefined && isSetBack({ now, latest: Math.min(flushedAt, latest) })) throw off;
    const span = { earliest: flushedAt - MAX_CLOCK_OFFSET_MS, latest: now };

    // Only the last part moves the heartbeat's time, and none does while the clocks differ, or vouches
    // for a suspension.
    const isExtended = off === undefined && !wasSuspended;
    for (let isDone = false; !isDone;) {
      const isNew = this.#sent === undefined; // otherwise it is sent again, unchanged
      const part = this.#sent ??= this.#nextPart(
        span,
        isExtended ? { until: now, ...end } : this.#own,
      );
      const outcome = await this.#send(part, isNew);
      this.#sent = undefined;
      if (outcome !== "recorded") {
        this.#backlog = [...part.rows, ...this.#backlog];
        if (off === undefined) await this.#beginAgain(now, outcome);
        throw off ?? new StorageError("ledger", outcome === "behind" ? LOST : ENDED);
      }
      const { rows: _, ...extension } = part;
      this.#own = { ...this.#own, ...extension, sequence: this.#own.sequence + 1 };
      isDone = (isNew || this.#own.end !== undefined) && this.#backlog.length === 0;
      if (!isDone) await yieldToRequests();
    }
    if (off !== undefined) throw off;
    this.#flushedAt = now;
    if (wasSuspended) await this.#beginAgain(now, "suspended", end);
    this.#recordedSuspensions = suspensions;
    // A fault from here on must not end the heartbeat twice.
    if (end.end === undefined) await this.#forget(now);
  }

  /** Takes the next part from the backlog. */
  #nextPart(
    span: Parameters<typeof dateRows>[1],
    extension: Pick<Heartbeat, "until" | "end">,
  ): FlushPart {
    const rows = dateRows(this.#backlog.splice(0, MAX_PART_ROWS), span);
    const { until, end } = this.#backlog.length === 0 ? extension : this.#own;
    return { rows, until, end };
  }

  /** Sends a part. If nothing was recorded, returns what is wrong with the server's heartbeat. */
  async #send(part: FlushPart, isNew: boolean): Promise<"recorded" | "ended" | "behind"> {
    const { ledger } = this.#options;
    const add = async (part: FlushPart) => await ledger.add(this.#sent = part, this.#own);
    const isAdded = await add(part).catch((error) => {
      if (!(error instanceof RejectedError)) throw error;
      this.#faults.report(error, { server: this.server });
      const rows = part.rows.filter((row) => !isRelease(row));
      return add({ ...part, rows: rows.map((row) => ({ ...row, client: OTHER })) });
    });
    if (isAdded) return "recorded";
    const { server, from, sequence } = this.#own;
    const found = (await ledger.heartbeats()).find((h) => h.server === server && h.from === from);
    if (!isNew && found?.sequence === sequence + 1) return "recorded"; // by an earlier attempt
    return found?.sequence === sequence ? "ended" : "behind";
  }

  /**
   * Begins a heartbeat after one that cannot be extended. If calls may be missing, it leaves the
   * doubt on record: the server's latest heartbeat, as it is in the ledger, loses its end; if there is
   * none, one of no length says since when the server has been counting.
   */
  async #beginAgain(
    now: number,
    reason: "ended" | "behind" | "suspended",
    end: End = {},
  ): Promise<void> {
    const { ledger, log } = this.#options;
    const last = this.#own;
    // One that began in the future would still be the latest of this server.
    const server = now < last.from ? crypto.randomUUID() : last.server;
    const from = server === last.server ? Math.max(now, last.from + 1) : now;
    const next = { server, policies: last.policies, from, until: from, sequence: 0, ...end };
    const begun: Heartbeat[] = [next];
    const ended: Heartbeat[] = [];
    if (reason === "suspended") ended.push({ ...last, end: "stopped" });
    if (reason === "behind") {
      const left = latestHeartbeats(await ledger.heartbeats()).get(last.server);
      if (left === undefined) begun.push(this.#first);
      else ended.push({ ...left, end: undefined, declaredAt: undefined });
    }
    await ledger.declare(begun, ended);
    this.#own = next;
    if (server === last.server) return;
    this.#first = next;
    const message = `From now on, the ledger names this server ${server}`;
    log({ event: "warning", server: last.server, message });
  }

  /** Deletes the days that are not retained, once a day. */
  async #forget(now: number): Promise<void> {
    const { ledger, config } = this.#options;
    const firstDay = dayOf(now - config.usageDays * DAY_MS);
    if (firstDay === this.#keptFrom) return;
    if (await ledger.forget(firstDay, now)) this.#keptFrom = firstDay;
  }
}

/** Whether the ledger's clock is behind what it recorded. */
function isSetBack({ now, latest }: LedgerTime): boolean {
  return latest - now > MAX_CLOCK_OFFSET_MS;
}

/** Returns a fault if this machine's clock differs from the ledger's. */
function clockFault({ now, latest }: LedgerTime, here: number): StorageError | undefined {
  const isAhead = isSetBack({ now, latest }); // or a server reported from the future
  if (!isAhead && Math.abs(here - now) <= MAX_CLOCK_OFFSET_MS) return undefined;
  const [own, other] = [here, isAhead ? latest : now].map((time) => new Date(time).toJSON());
  const fault = isAhead ? `a server reported at ${other}` : `it is ${other} in the database`;
  const remedy = isAhead
    ? "or declare that server gone, if this one is right (`deno task media usage`)"
    : "or the database's, if this one is right";
  return new StorageError(CLOCK, `${fault}, but ${own} here: correct this clock, ${remedy}`);
}

const CLOCK = "clock";

const LOST =
  "it lacks this server's last report, as if it had been restored or replaced: the gate is " +
  "unknown for the time since that copy";

const ENDED =
  "this server's heartbeat has an end, as if it had been declared gone, but it is running: it has " +
  "registered again";
