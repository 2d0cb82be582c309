/**
 * The side of a process in the record: it counts in memory, and writes the counts to the ledger with
 * its heartbeats. Nothing on the way of a request waits for the ledger.
 */

import { fulfilledWithin } from "../../async/deadline.ts";
import { yieldToRequests } from "../../async/yield.ts";
import { isLasting, StorageError } from "../../errors/storage_error.ts";
import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { FaultLog, type Log } from "../../log/log.ts";
import { HeartbeatSchedule } from "./heartbeat_schedule.ts";
import { HeldPolicies, type ReadHolds } from "./holds.ts";
import type { Ledger, NewSession } from "./ledger.ts";
import { UsageMeter } from "./meter.ts";
import type { OpenLedger } from "./open_ledger.ts";
import {
  keyOf,
  lagOf,
  type LedgerTime,
  MAX_PART_ROWS,
  MOUNTING_MS,
  type Part,
  requireRouteNames,
  type Session,
  type SessionFacts,
  sessionFacts,
  SHORTEST_GAP_MS,
  type UsageCount,
} from "./records.ts";
import { deletedRoutes, Retention } from "./upkeep.ts";

/** How long a start waits for the ledger, in milliseconds. */
const START_MS = 2_000;

/** How long {@linkcode Recorder.close} waits for answers and for the ledger, in milliseconds. */
const CLOSE_MS = 10_000;

/** The number of days before a start whose clients the process knows. */
const KNOWN_DAYS = 7;

export interface RecorderOptions extends Omit<SessionFacts, "opened"> {
  /** Opens the ledger. Called again if it rejects, and for calls that come after the last heartbeat. */
  readonly open: () => Promise<OpenLedger>;
  /** The policies of the routes. */
  readonly policies: RoutePolicies;
  /**
   * Whether routes are counted only once they are mounted: see {@linkcode Recorder.mount}. If not, all
   * of them are from the start.
   */
  readonly isMountedLater?: boolean | undefined;
  /** The name of the request field that identifies clients to the operator, if any. */
  readonly clientField?: string | undefined;
  /** Called when holds have changed the policies: what was made by them is outdated. */
  readonly onHold?: (() => void) | undefined;
  /** Called once the process is registered, with the sessions that were on record before. */
  readonly onRegister?: ((sessions: readonly Session[]) => void) | undefined;
  /** Metrics of the counts, for alerts. */
  readonly metrics?: {
    add(counts: readonly UsageCount[]): void;
    /** Says whether calls are being recorded. */
    setRecording(isRecording: boolean): void;
    /** Notes the policies whenever holds have changed them. */
    announce(policies: RoutePolicies): void;
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

/** The session as this process last knew it to be in the ledger. */
interface KnownSession extends Pick<Session, "id" | "sequence" | "policies"> {
  /** When it began, by the process's lifetime. */
  readonly began: number;
  /** Whether the process stopped in it. What it answers later begins another one. */
  readonly isStopped: boolean;
}

/** A reading of the ledger's time. */
interface Reading extends LedgerTime {
  /** The process's lifetime when the time was asked for. */
  readonly asked: number;
}

/** A part that was sent, and all that is sent again with it until its outcome is known. */
interface SentPart extends Pick<NewSession, "id" | "policies" | "start" | "isClockBehind"> {
  readonly part: Part;
  readonly reading: Reading;
  /** When it was first sent, by the process's lifetime. */
  readonly at: number;
}

type Outcome = "recorded" | "failed" | "last";

export class Recorder {
  readonly meter: UsageMeter;
  readonly #options: RecorderOptions;
  readonly #facts: SessionFacts;
  readonly #lifetime: () => number;
  readonly #opened: number;
  /**
   * When the process opened the record, by the ledger's time: the earliest that followed from how long
   * it had lived, since it does not live while the machine sleeps.
   */
  #start = Infinity;
  readonly #faults: FaultLog;
  readonly #policies: HeldPolicies;
  readonly #schedule: HeartbeatSchedule;
  readonly #backlog = new Backlog();
  readonly #retention: Retention;
  #ledger: OpenLedger | undefined;
  /** The id of the session to begin next. */
  #next: string = crypto.randomUUID();
  /** The id of the latest session, or of the first one to begin. */
  #id: string = this.#next;
  #session: KnownSession | undefined;
  #sent: SentPart | undefined;
  /** The reading of the ledger's time that the last heartbeat reported. */
  #reported: Reading | undefined;
  #isRegistered = false;
  #isStarted = false;
  readonly #mounted = new Set<string>();
  /** When the first route was mounted, by the process's lifetime. */
  #mountedAt: number | undefined;
  /** What the log says of routes that are not mounted. */
  #unmountedText: string | undefined;
  /** What is said of routes that are called, but deleted, and the day on which it was read. */
  #deleted: { readonly day: string; readonly texts: readonly string[] } | undefined;
  #fault: string | undefined;
  /** Why the last heartbeat failed, if it did. */
  #failure: unknown;
  #unanswered = 0;
  #isClosing = false;
  #closed: Promise<void> | undefined;
  /** Called once the process has stopped, as it is in the ledger. */
  #onStopped = () => {};

  constructor(options: RecorderOptions) {
    const { policies, clientField, clock, lifetime = () => performance.now(), log } = options;
    const { process, onDemand, publicUrl, contact, retainDays } = options;
    requireRouteNames(policies);
    const opened = crypto.randomUUID();
    this.#facts = { opened, process, onDemand, publicUrl, contact, retainDays };
    this.#options = options;
    this.#lifetime = lifetime;
    this.#opened = lifetime();
    this.#schedule = new HeartbeatSchedule(() => this.#beat(), lifetime);
    this.meter = new UsageMeter(clientField, () => this.#schedule.count());
    this.#policies = new HeldPolicies(policies, clock);
    this.#faults = new FaultLog(log);
    this.#retention = new Retention(retainDays);
    if (options.isMountedLater !== true) {
      for (const route of Object.keys(policies)) this.#mounted.add(route);
    }
  }

  /** The policies of the routes at present, under the holds that the process knows. */
  get policies(): RoutePolicies {
    return this.#policies.current;
  }

  /** Whether the process was ever registered in the ledger. */
  get isRegistered(): boolean {
    return this.#isRegistered;
  }

  /** The id of the process's session. It changes if another one begins while the process runs. */
  get session(): string {
    return this.#id;
  }

  /** The fault of the record of calls, for a health check; `undefined` if there is none. */
  get fault(): string | undefined {
    return this.#fault ?? this.#unmountedFault;
  }

  /**
   * What is wrong with the routes: a sentence for each that was called in the last 30 days, but that
   * the process does not have. The record itself is not at fault.
   */
  get deletedRoutes(): readonly string[] {
    return this.#deleted?.texts ?? [];
  }

  /**
   * Notes that a route is mounted. Sessions announce and count those only. In the first minute of a
   * session, routes count as mounted from its beginning; later, another session begins.
   */
  mount(route: string): void {
    if (this.#mounted.has(route)) return;
    this.#mountedAt ??= this.#lifetime();
    this.#mounted.add(route);
    if (this.#isRegistered) void this.flush();
  }

  /** Notes that a call has arrived. The process does not stop before it is answered. */
  arrive(): void {
    this.#unanswered++;
  }

  /** Notes that such a call was answered and counted, or that its client has gone. */
  leave(): void {
    this.#unanswered--;
    if (this.#isClosing && this.#unanswered === 0) void this.flush();
  }

  /**
   * Registers the process in the ledger, and starts its heartbeats. Waits for the ledger for two
   * seconds at most. If it cannot be reached by then, the process is registered later.
   *
   * @throws If the ledger cannot be used for a reason that waiting does not mend.
   */
  async start(): Promise<void> {
    await fulfilledWithin(START_MS, this.flush());
    this.#isStarted = true;
    if (this.#isRegistered) return;
    if (this.#failure === undefined) { // it hangs
      this.#fail(new StorageError("ledger", `no answer within ${START_MS / 1_000} s`));
    }
    if (!isLasting(this.#failure)) return;
    this.#schedule.stop();
    await this.#ledger?.close();
    throw this.#failure;
  }

  /** Sends a heartbeat, with the counts so far. Never rejects: faults are logged, and it is retried. */
  flush(): Promise<void> {
    return this.#schedule.flush();
  }

  /**
   * Waits until every call is answered, records the last counts, and that the process stops: for ten
   * seconds at most. After that, what is answered is still recorded, if the process goes on.
   */
  close(): Promise<void> {
    return this.#closed ??= this.#close();
  }

  async #close(): Promise<void> {
    this.#isClosing = true;
    const stopped = new Promise<void>((resolve) => this.#onStopped = resolve);
    void this.flush();
    await fulfilledWithin(CLOSE_MS, stopped);
  }

  /** Returns the number of calls that may not be in the ledger. */
  unrecorded(): number {
    this.#takeCounts();
    const sent = this.#sent?.part.counts ?? [];
    return sent.reduce((sum, { calls }) => sum + calls, this.#backlog.calls);
  }

  async #beat(): Promise<Outcome> {
    if (this.#isOver) return "last"; // asked for before the one that said so had ended
    try {
      const { ledger } = this.#ledger ??= await this.#options.open();
      this.#fault = this.#isRegistered ? await this.#write(ledger) : await this.#register(ledger);
      this.#failure = undefined;
      const isLast = await this.#hasStopped();
      this.#options.metrics?.setRecording(true);
      return isLast ? "last" : "recorded";
    } catch (cause) {
      this.#fail(cause);
      return "failed";
    } finally {
      this.#warnOfUnmounted();
    }
  }

  /** Notes that a heartbeat failed, for the log, the health check and the metrics. */
  #fail(cause: unknown): void {
    const { metrics } = this.#options;
    this.#failure = cause;
    const isThrown = !this.#isStarted && isLasting(cause); // so it need not be logged
    if (!isThrown) {
      this.#faults.log(cause, { session: this.session, unrecorded: this.unrecorded() });
    }
    const reason = this.#isRegistered ? "the ledger fails" : "the process is not registered yet";
    this.#fault = `no record of calls: ${reason} (see the log)`;
    metrics?.setRecording(false);
  }

  /** Reads what the process has to know, and writes its first heartbeat. */
  async #register(ledger: Ledger): Promise<string | undefined> {
    const { onRegister, log } = this.#options;
    const { now } = await ledger.time();
    const clients = await ledger.clientsSince(dayOf(now - KNOWN_DAYS * DAY_MS));
    for (const client of clients) this.meter.know(client);
    await this.#findDeleted(ledger, now);
    const sessions = await ledger.sessions();
    try {
      return await this.#write(ledger);
    } finally {
      if (this.#isRegistered) { // even if a later part of the heartbeat failed
        onRegister?.(sessions.filter(({ opened }) => opened !== this.#facts.opened));
        for (const message of this.deletedRoutes) log({ event: "warning", message });
      }
    }
  }

  /** Finds routes that are called, but deleted, once a day. */
  async #findDeleted(ledger: Ledger, now: number): Promise<void> {
    const day = dayOf(now);
    if (day === this.#deleted?.day) return;
    const texts = await deletedRoutes(ledger, Object.keys(this.#options.policies));
    this.#deleted = { day, texts };
  }

  /** Writes a heartbeat. Returns the fault for the health check, if any. */
  async #write(ledger: Ledger): Promise<string | undefined> {
    if (this.#sent !== undefined) await this.#send(ledger, this.#sent);

    // The time is read before the counts are taken: what was answered before it is among them.
    const [asked, askedHere] = [this.#lifetime(), this.#options.clock()];
    const reading = { ...await ledger.time(), asked };
    const fault = this.#compareClocks(reading, askedHere); // at once: writing can take long
    this.#takeCounts();
    if (this.#session?.isStopped && this.#backlog.isEmpty) return fault;
    const now = this.#lifetime();
    const start = this.#start = Math.min(
      this.#start,
      Math.floor(reading.now - (now - this.#opened)),
    );
    const lived = Math.ceil(now - (this.#reported?.asked ?? this.#opened));
    let isClockBehind = lagOf(reading) >= SHORTEST_GAP_MS;
    let before = reading.now;
    do {
      const counts = this.#backlog.takePart();
      const isLast = this.#backlog.isEmpty;
      const isStopped = isLast && this.#isClosing && this.#unanswered === 0 && this.meter.isEmpty;
      const part = { counts, before, lived, isLast, isStopped };
      const policies = this.#mountedPolicies;
      const at = this.#lifetime();
      await this.#send(ledger, {
        part,
        reading,
        id: this.#next,
        policies,
        start,
        isClockBehind,
        at,
      });
      if (isClockBehind) before = reading.databaseTime; // the first part has brought instants back
      isClockBehind = false;
      if (!isLast) await yieldToRequests();
    } while (!this.#backlog.isEmpty);

    if (!this.#isClosing) {
      await this.#retention.apply(ledger, reading.now);
      await this.#findDeleted(ledger, reading.now);
    }
    return fault;
  }

  #takeCounts(): void {
    const counts = this.meter.take(this.#options.clock());
    this.#options.metrics?.add(counts);
    this.#backlog.add(counts);
  }

  /** Sends a part until its outcome is known, or the ledger fails. */
  async #send(ledger: Ledger, sent: SentPart): Promise<void> {
    const isRepeated = this.#sent === sent;
    this.#sent = sent;
    const session = this.#session;
    const { part, policies, isClockBehind } = sent;
    const isOver = session === undefined || session.isStopped;
    if (isOver || isClockBehind || isMountedLate(session, sent)) {
      return await this.#begin(ledger, sent);
    }
    const news = isSame(session.policies, policies) ? undefined : policies;
    const holds = await ledger.write(part, session, news);
    if (holds === undefined) {
      const found = isRepeated ? await ledger.session(session.id) : undefined;
      // One that has it may be ended: a beginning from before a restore can land late.
      if (found?.sequence !== session.sequence + 1) return await this.#begin(ledger, sent);
    }
    this.#learn(holds);
    const { isStopped } = part;
    this.#know({ ...session, sequence: session.sequence + 1, policies, isStopped }, sent);
  }

  /** Begins a session with a part, unless an earlier attempt has begun it. */
  async #begin(ledger: Ledger, sent: SentPart): Promise<void> {
    const { part, id, policies, start, isClockBehind, at } = sent;
    const session = {
      ...this.#facts,
      id,
      continued: this.#session,
      policies,
      start,
      isClockBehind,
    };
    const begun = await ledger.begin(session, part);
    const { lost } = begun ?? await ledger.session(id) ?? {};
    this.#learn(begun?.holds);
    this.#know({ id, sequence: 1, policies, began: at, isStopped: part.isStopped }, sent);
    this.#next = crypto.randomUUID();
    const isFirst = !this.#isRegistered;
    this.#isRegistered = true;
    if (isFirst && !this.#isStarted) return; // that one is for the caller to log
    const facts = sessionFacts(id, this.#options.process);
    const isAfterLoss = lost !== undefined;
    this.#options.log(
      isAfterLoss ? { event: "warning", ...facts, message: LOST } : { event: "session", ...facts },
    );
  }

  /** Notes that a part is in the ledger, in this session. */
  #know(session: KnownSession, { part: { isLast }, reading }: SentPart): void {
    this.#sent = undefined;
    this.#session = session;
    this.#id = session.id;
    if (isLast) this.#reported = reading;
  }

  #learn(holds: ReadHolds | undefined): void {
    if (holds === undefined) return;
    const { log, onHold, metrics } = this.#options;
    const { hasChanged, faults } = this.#policies.learn(holds);
    for (const message of faults) log({ event: "warning", message });
    if (!hasChanged) return;
    onHold?.();
    metrics?.announce(this.policies);
  }

  /** Whether the process has stopped, and everything is in the ledger. */
  get #isOver(): boolean {
    return this.#session?.isStopped === true && this.#unanswered === 0 &&
      this.#sent === undefined &&
      this.meter.isEmpty && this.#backlog.isEmpty;
  }

  /** Closes the ledger if the process has stopped, and everything is in it. */
  async #hasStopped(): Promise<boolean> {
    if (!this.#isOver) return false;
    const { close } = this.#ledger ?? {};
    this.#ledger = undefined;
    await close?.();
    this.#onStopped();
    return true;
  }

  get #mountedPolicies(): RoutePolicies {
    const entries = Object.entries(this.#options.policies);
    return Object.fromEntries(entries.filter(([route]) => this.#mounted.has(route)));
  }

  /** Says which routes were not mounted within a minute, though others were. */
  get #unmountedFault(): string | undefined {
    const left = Object.keys(this.#options.policies).filter((route) => !this.#mounted.has(route));
    const isEarly = this.#lifetime() - (this.#mountedAt ?? Infinity) < MOUNTING_MS;
    if (left.length === 0 || this.#mountedAt === undefined || isEarly) return undefined;
    return `${left.join(", ")}: not mounted, so calls are not counted`;
  }

  #warnOfUnmounted(): void {
    const message = this.#unmountedFault;
    if (message !== undefined && message !== this.#unmountedText) {
      this.#options.log({ event: "warning", session: this.session, message });
    }
    this.#unmountedText = message;
  }

  /**
   * Logs and returns a fault if this machine's clock differs from the database's.
   *
   * @param asked When the database was asked, by the clock here.
   */
  #compareClocks({ databaseTime }: LedgerTime, asked: number): string | undefined {
    const here = Math.max(asked, Math.min(databaseTime, this.#options.clock()));
    const fault = clockFault({ here, inDatabase: databaseTime });
    if (fault === undefined) return undefined;
    this.#faults.log(fault, { session: this.session }, { kind: "clocks differ" });
    return "the clock here is not the database's (see the log)";
  }
}

const LOST = "The ledger does not have this process's last heartbeat as it was written, as if it " +
  "had been restored, replaced or copied. Verdicts name the time whose calls are lost";

/** Returns whether a part mounts a route so late that the session cannot have it from its beginning. */
function isMountedLate(session: KnownSession, { policies, at }: SentPart): boolean {
  return !isSame(session.policies, policies) && at - session.began >= MOUNTING_MS;
}

/** Returns whether two lists of routes are the same. Routes are only ever added. */
function isSame(a: RoutePolicies, b: RoutePolicies): boolean {
  return Object.keys(a).length === Object.keys(b).length;
}

/**
 * Returns the fault to log if two clocks differ by a minute or more; `undefined` otherwise. Both are
 * in milliseconds since the epoch.
 */
export function clockFault({ here, inDatabase }: {
  /** This machine's clock, by which phases begin and end. */
  readonly here: number;
  /** The database's clock, by which calls are recorded. */
  readonly inDatabase: number;
}): string | undefined {
  if (Math.abs(here - inDatabase) < SHORTEST_GAP_MS) return undefined;
  const timeHere = new Date(here).toISOString();
  const timeInDatabase = new Date(inDatabase).toISOString();
  return `it is ${timeHere} here, but ${timeInDatabase} in the database: correct the clock that ` +
    "is wrong. Phases begin and end by the clock here; calls are recorded by the database's";
}

/** The counts that are yet to be sent to the ledger, one for each key. */
export class Backlog {
  readonly #counts = new Map<string, UsageCount>();

  /** Whether nothing is to be sent. */
  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  /** The number of calls in all counts. */
  get calls(): number {
    return [...this.#counts.values()].reduce((sum, { calls }) => sum + calls, 0);
  }

  /** Adds counts to those with the same key. */
  add(counts: readonly UsageCount[]): void {
    for (const count of counts) {
      const key = keyOf(count);
      const calls = (this.#counts.get(key)?.calls ?? 0) + count.calls;
      this.#counts.set(key, { ...count, calls });
    }
  }

  /** Returns the oldest counts, at most {@linkcode MAX_PART_ROWS}, and removes them. */
  takePart(): UsageCount[] {
    const counts = [...this.#counts.values()].slice(0, MAX_PART_ROWS);
    for (const count of counts) this.#counts.delete(keyOf(count));
    return counts;
  }
}
