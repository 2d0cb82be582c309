/**
 * The protocol of a process's session in the ledger. The session shows since when the counts are
 * complete.
 */

import { yieldToRequests } from "../../async/yield.ts";
import { StorageError } from "../../errors/storage_error.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { FaultLog, type Log } from "../../log/log.ts";
import { Backlog } from "./backlog.ts";
import { clockFault } from "./clock_fault.ts";
import { DAY_MS, dayOf } from "./day.ts";
import { FlushSchedule } from "./flush_schedule.ts";
import type { BeginOptions, Ledger } from "./ledger.ts";
import { LivedTime } from "./lived_time.ts";
import { UsageMeter } from "./meter.ts";
import {
  type FlushPart,
  type LedgerTime,
  type ProcessIdentity,
  requireRouteNames,
  type Session,
  type UsageCount,
} from "./records.ts";
import { Retention } from "./retention.ts";
import { sessionFacts } from "./session_name.ts";

/** The number of attempts at the last flush. */
const STOP_TRIES = 6;

/** Milliseconds between two of these attempts. */
const STOP_DELAY_MS = 200;

/** The number of days before a start whose clients the process knows. */
const KNOWN_DAYS = 7;

export interface RecorderOptions {
  /** The ledger, or what opens it, and is called again if it rejects. */
  readonly ledger: Ledger | (() => Promise<Ledger>);
  /** The policies of the routes that are counted. */
  readonly policies: RoutePolicies;
  readonly process: ProcessIdentity;
  /**
   * Whether the process may serve before it is registered. Then a ledger that fails at the start
   * does not stop it, and every flush tries again to register.
   */
  readonly mayStartUnregistered?: boolean | undefined;
  /** The URL at which clients reach the application, if it is known. */
  readonly publicUrl?: string | undefined;
  /** The URL at which owners of clients reach the operator, if there is one. */
  readonly contact?: string | undefined;
  /** The number of whole days that the ledger retains. */
  readonly retainDays: number;
  /** The name of the request field that identifies clients to the operator, if any. */
  readonly clientField?: string | undefined;
  /** Metrics of the counts, for alerts. */
  readonly metrics?: {
    add(counts: readonly UsageCount[]): void;
    /** Says whether calls are being recorded. */
    setRecording(isRecording: boolean): void;
  } | undefined;
  /** Returns the time in milliseconds since the epoch. */
  readonly clock: () => number;
  /**
   * Returns the milliseconds that the process has lived through, from any origin. This clock stands
   * still while the machine sleeps, and nobody can set it.
   */
  readonly lifetime?: () => number;
  readonly log: Log;
}

export class Recorder {
  readonly meter: UsageMeter;
  readonly #options: RecorderOptions;
  #ledger: Ledger | undefined;
  readonly #faults: FaultLog;
  readonly #schedule = new FlushSchedule(() => this.#attempt());
  /** The session as this process last knew it to be in the ledger. */
  #session: Session;
  /** The session to begin, until it is known to be registered. */
  #next: Session | undefined;
  /** The ledger's time since the session began, once the process is registered. */
  #lived: LivedTime | undefined;
  /** The part of a flush that was sent, until its outcome is known. */
  #sent: FlushPart | undefined;
  readonly #backlog = new Backlog();
  readonly #retention: Retention;
  #fault: string | undefined;
  /** Whether every flush that begins from now on may be the last. */
  #isStopping = false;

  constructor(options: RecorderOptions) {
    const { policies, clientField, clock, log } = options;
    requireRouteNames(policies);
    this.meter = new UsageMeter(policies, clientField, {
      onFirstCall: () => this.#schedule.hasten(),
      clock: () => this.#lived?.estimate() ?? clock(),
    });
    this.#options = options;
    this.#session = this.#next = newSession(options, 0);
    this.#faults = new FaultLog(log);
    this.#retention = new Retention(options.retainDays);
  }

  /** Whether the process is registered. */
  get isRegistered(): boolean {
    return this.#lived !== undefined;
  }

  /** The id of the process's session. It changes if the session ends while the process runs. */
  get session(): string {
    return this.#session.id;
  }

  /** The fault of the record of calls, for a health check; `undefined` if there is none. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /**
   * Registers the process in the ledger, and starts flushing. The timer does not keep the process
   * running.
   *
   * @throws {StorageError} If the process cannot be registered, and may not start unregistered: its
   *   calls would not be counted.
   */
  async start(): Promise<void> {
    try {
      await this.#register();
    } catch (error) {
      const isExpected = error instanceof StorageError;
      if (!isExpected || this.#options.mayStartUnregistered !== true) throw error;
      this.#reportFault(error);
    }
    this.#schedule.start();
  }

  /** Opens the ledger, and begins the process's first session. */
  async #register(): Promise<void> {
    const { ledger } = this.#options;
    const opened = typeof ledger === "function" ? await ledger() : ledger;
    this.#ledger = opened;
    const { now } = await opened.time();
    for await (const { client } of opened.usage(dayOf(now - KNOWN_DAYS * DAY_MS))) {
      this.meter.know(client);
    }
    await this.#begin();
  }

  /** The ledger, once it is opened. */
  get #opened(): Ledger {
    return this.#ledger as Ledger;
  }

  /** The lived time of a process that is registered. */
  get #livedTime(): LivedTime {
    return this.#lived as LivedTime;
  }

  /** Flushes the counts so far. Never rejects: faults are logged, and the next flush retries. */
  flush(): Promise<void> {
    return this.#schedule.flush();
  }

  /** Flushes the last counts, and ends the session. Call it after the last response. */
  async stop(): Promise<void> {
    this.#schedule.stop();
    this.#isStopping = true;
    this.#takeCounts();
    for (let tries = 0; tries < STOP_TRIES; tries++) {
      await this.flush();
      if (this.#session.ended !== undefined) return;
      await new Promise((resolve) => setTimeout(resolve, STOP_DELAY_MS));
    }
  }

  /** Returns the number of calls that were taken from the meter, but may not be in the ledger. */
  unrecorded(): number {
    const sent = this.#sent?.counts ?? [];
    return sent.reduce((sum, { calls }) => sum + calls, this.#backlog.calls);
  }

  async #attempt(): Promise<void> {
    const isLast = this.#isStopping;
    let isRecording = true;
    try {
      if (!this.isRegistered) await this.#registerLate();
      this.#fault = await this.#write(isLast);
    } catch (cause) {
      isRecording = false;
      this.#reportFault(cause);
    }
    this.#options.metrics?.setRecording(isRecording);
  }

  /** Registers the process while it serves. */
  async #registerLate(): Promise<void> {
    await this.#register().finally(() => this.#takeCounts());
    const { process, log } = this.#options;
    log({ event: "session", ...sessionFacts(this.session, process) });
  }

  #reportFault(cause: unknown): void {
    this.#faults.report(cause, { session: this.session, unrecorded: this.unrecorded() });
    const reason = this.isRegistered ? "the ledger fails" : "the process is not registered yet";
    this.#fault = `no record of calls: ${reason} (see the log)`;
  }

  #takeCounts(): void {
    const counts = this.meter.take(this.#options.clock());
    this.#options.metrics?.add(counts);
    this.#backlog.add(counts);
  }

  /** Writes all counts to the ledger. Returns the fault for the health check, if any. */
  async #write(isLast: boolean): Promise<string | undefined> {
    const ledger = this.#opened;
    // The report vouches for every call answered before it, so its time is read before the counts
    // are taken. No call may be dated before it was answered, so calls are dated with a time that
    // is read after the counts are taken. The machine's clock is read first, so that by each clock,
    // no less time has passed since the report than since the calls that it vouches for.
    const clock = this.#options.clock();
    const { now: reported } = await this.#livedTime.read(ledger).finally(() => this.#takeCounts());
    const time = await this.#livedTime.read(ledger);
    const fault = this.#compareClocks(time); // at once, because sending can take long
    if (this.#sent !== undefined) await this.#send(this.#sent);

    // Counts are recorded before a session lapses, but do not extend it.
    while (this.#session.ended === undefined) {
      const counts = this.#backlog.takePart();
      if (this.#livedTime.hasLapsed && counts.length === 0) {
        await this.#begin({ lapsed: this.#session });
        continue;
      }
      const isReport = this.#backlog.isEmpty && !this.#livedTime.hasLapsed;
      const report = isReport ? { reported, clock, isStopped: isLast } : {};
      const isRecorded = await this.#send({ counts, at: time.now, ...report });
      if (isRecorded && isReport) break;
      await yieldToRequests();
    }
    if (!isLast) await this.#retention.apply(ledger, time.now);
    return fault;
  }

  /**
   * Sends a part. If it was not recorded, puts its counts back, and begins another session.
   *
   * @returns Whether the part was recorded.
   */
  async #send(part: FlushPart): Promise<boolean> {
    const ledger = this.#opened;
    const session = this.#session;
    const isRepeated = this.#sent === part;
    this.#sent = part;
    if (!await ledger.add(part, session)) {
      // Only the sequence number says whether an earlier attempt was committed.
      const found = await ledger.session(session.id);
      if (!isRepeated || found?.sequence !== session.sequence + 1) {
        this.#sent = undefined;
        this.#backlog.add(part.counts);
        await this.#beginAgain(found);
        return false;
      }
    }
    this.#sent = undefined;
    this.#session = {
      ...session,
      sequence: session.sequence + 1,
      reported: Math.max(part.reported ?? 0, session.reported),
      ended: part.isStopped ? "stopped" : undefined,
    };
    return true;
  }

  /** Begins another session, because the ledger has the process's session in another state. */
  async #beginAgain(found: Session | undefined): Promise<void> {
    const left = this.#session;
    if (found?.sequence !== left.sequence) {
      await this.#begin({ lost: left }, LOST);
    } else if (found.ended === undefined) { // a restart of the record set its last report back
      await this.#begin({ lapsed: left });
    } else {
      await this.#begin({}, found.ended === "gone" ? GONE : undefined);
    }
  }

  /**
   * Begins a session. Logs it, unless it is the process's first: that one is for the caller to log.
   *
   * @param warning Why another session was necessary, if the operator should know.
   */
  async #begin(options: BeginOptions = {}, warning?: string): Promise<void> {
    const { process, clock, lifetime = () => performance.now(), log } = this.#options;
    const ledger = this.#opened;
    const isFirst = !this.isRegistered;
    // A session that continues an earlier one vouches for what the process counted before, too.
    const next = this.#next ?? newSession(this.#options, 1);
    this.#next = { ...next, clock: clock() };
    const began = await ledger.begin(this.#next, options);
    if (began === undefined) return await this.#beginAgain(await ledger.session(this.session));
    this.#session = { ...this.#next, reported: began };
    this.#next = undefined;
    this.#lived = new LivedTime(began, lifetime);
    if (isFirst) return;
    const facts = sessionFacts(this.session, process);
    log(
      warning ? { event: "warning", ...facts, message: warning } : { event: "session", ...facts },
    );
  }

  /** Logs and returns a fault if this machine's clock differs from the database's. */
  #compareClocks({ clock }: LedgerTime): string | undefined {
    const fault = clockFault({ here: this.#options.clock(), inDatabase: clock });
    if (fault === undefined) return undefined;
    this.#faults.report(fault, { session: this.session }, { kind: "clocks differ" });
    return "the clock here is not the database's (see the log)";
  }
}

function newSession(options: RecorderOptions, sequence: number): Session {
  const { policies, process, mayStartUnregistered, publicUrl, contact } = options;
  const id = crypto.randomUUID();
  const facts = { policies, process, mayStartUnregistered, publicUrl, contact };
  return { id, ...facts, began: 0, reported: 0, clock: 0, sequence };
}

const LOST = "The ledger does not have this process's last report, as if it had been " +
  "restored or replaced. The record of calls starts again now, with this new session";

const GONE = "This process's session was ended, as by --gone, although the process is running. " +
  "It continues with this new session";
