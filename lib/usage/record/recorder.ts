/**
 * The protocol of a process's session in the ledger. The session shows since when the counts are
 * complete.
 */

import { yieldToRequests } from "../../async/yield.ts";
import { StorageError } from "../../errors/storage_error.ts";
import type { RoutePolicies } from "../../lifecycle/policy.ts";
import { FaultLog, type Log } from "../../log/log.ts";
import { Backlog } from "./backlog.ts";
import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import { deletedRoutes } from "./deleted_routes.ts";
import { FlushSchedule } from "./flush_schedule.ts";
import { HeldPolicies, type ReadHolds } from "./holds.ts";
import { Intents, type PendingHeartbeat } from "./intents.ts";
import type { BeginOptions, BegunSession, Ledger, Mounts, NewSession } from "./ledger.ts";
import { LivedTime } from "./lived_time.ts";
import { UsageMeter } from "./meter.ts";
import {
  type FlushPart,
  type LedgerTime,
  MOUNTING_MS,
  type ProcessIdentity,
  requireRouteNames,
  type Session,
  sessionFacts,
  SHORTEST_GAP_MS,
  type UsageCount,
} from "./records.ts";
import { Retention } from "./retention.ts";

/** The number of attempts at the last flush. */
const STOP_TRIES = 6;

/** Milliseconds between two of these attempts. */
const STOP_DELAY_MS = 200;

/** The number of sessions that one flush may begin. */
const MAX_SESSIONS = 3;

/** The number of days before a start whose clients the process knows. */
const KNOWN_DAYS = 7;

export interface RecorderOptions {
  /** The ledger, or what opens it, and is called again if it rejects. */
  readonly ledger: Ledger | (() => Promise<Ledger>);
  /** The policies of the routes. */
  readonly policies: RoutePolicies;
  /**
   * Whether routes are counted only once they are mounted: see {@linkcode Recorder.mount}. If not, all
   * of them are from the start.
   */
  readonly isMountedLater?: boolean | undefined;
  readonly process: ProcessIdentity;
  /**
   * Whether the process may start before it is registered. Then a ledger that fails at the start
   * does not stop it, and every flush tries again to register.
   */
  readonly mayStartUnregistered?: boolean | undefined;
  /** Whether calls are answered that the ledger does not take. The session says so. */
  readonly mayServeUnrecorded?: boolean | undefined;
  /** The URL at which clients reach the application, if it is known. */
  readonly publicUrl?: string | undefined;
  /** The URL at which owners of clients reach the operator, if there is one. */
  readonly contact?: string | undefined;
  /** The number of whole days that the ledger retains. */
  readonly retainDays: number;
  /** The name of the request field that identifies clients to the operator, if any. */
  readonly clientField?: string | undefined;
  /** Called when holds have changed the policies: what was made by them is outdated. */
  readonly onHold?: (() => void) | undefined;
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

interface Registered {
  readonly ledger: Ledger;
  /** The session as this process last knew it to be in the ledger. */
  readonly session: Session;
  /** The ledger's time since the session began. */
  readonly lived: LivedTime;
  /** When the session began, by the process's lifetime. */
  readonly began: number;
}

/** The result of sending a part. The process may have another session then. */
interface SendResult {
  readonly registered: Registered;
  readonly isRecorded: boolean;
  readonly time?: LedgerTime | undefined;
}

/** A part of a flush, and what of it the process needs to know again. */
interface SentPart extends FlushPart {
  readonly pending: PendingHeartbeat;
}

export class Recorder {
  readonly meter: UsageMeter;
  readonly intents: Intents;
  readonly #options: RecorderOptions;
  readonly #lifetime: () => number;
  readonly #faults: FaultLog;
  readonly #policies: HeldPolicies;
  readonly #schedule = new FlushSchedule(() => this.#attempt());
  readonly #first: NewSession;
  #registered: Registered | undefined;
  /** The session to begin, until it is known to be registered. */
  #next: NewSession | undefined;
  /** The part of a flush that was sent, until its outcome is known. */
  #sent: SentPart | undefined;
  readonly #backlog = new Backlog();
  readonly #retention: Retention;
  /** The routes that are mounted. */
  readonly #mounted = new Set<string>();
  /** When the first route was mounted, by the process's lifetime. */
  #mountedAt: number | undefined;
  /** What the log says of routes that are not mounted. */
  #unmountedText: string | undefined;
  /** What is said of routes that are called, but deleted, and the day on which it was read. */
  #deleted: { readonly day: string; readonly texts: readonly string[] } | undefined;
  #fault: string | undefined;
  /** Whether every flush that begins from now on may be the last. */
  #isStopping = false;

  constructor(options: RecorderOptions) {
    const { policies, clientField, clock, lifetime = () => performance.now(), log } = options;
    requireRouteNames(policies);
    this.meter = new UsageMeter(clientField);
    this.#policies = new HeldPolicies(policies, clock);
    this.#options = options;
    this.#lifetime = lifetime;
    if (options.isMountedLater !== true) this.#addMounted(Object.keys(policies));
    this.#first = this.#next = newSession(options, this.#mounts, 0);
    this.#faults = new FaultLog(log);
    this.#retention = new Retention(options.retainDays);
    this.intents = new Intents({
      write: async (intent, isWanted) => {
        if (!this.#hasRecordedMounts) await this.flush();
        if (!isWanted()) return false;
        if (this.#registered === undefined) throw new Error("The process is not registered");
        if (!this.#hasRecordedMounts) throw new Error("The mount is not recorded");
        const { ledger, session } = this.#registered;
        try {
          const holds = await ledger.intend(intent, session);
          this.#learn(holds);
          return holds !== undefined;
        } catch (cause) { // a flush need not meet it
          this.#faults.log(cause, { session: session.id });
          throw cause;
        }
      },
      catchUp: () => this.#schedule.flush(),
      clock,
      lifetime,
    });
  }

  /** The policies of the routes at present, under the holds that the process knows. */
  get policies(): RoutePolicies {
    return this.#policies.current;
  }

  get isRegistered(): boolean {
    return this.#registered !== undefined;
  }

  /** The id of the process's session. It changes if the session ends while the process runs. */
  get session(): string {
    return (this.#registered?.session ?? this.#first).id;
  }

  /** The fault of the record of calls, for a health check; `undefined` if there is none. */
  get fault(): string | undefined {
    return this.#fault ?? (this.intents.areRefused ? REFUSED : undefined) ?? this.#unmountedFault;
  }

  /**
   * What is wrong with the routes: a sentence for each that was called in the last 30 days, but that
   * the process does not have. The record itself is not at fault.
   */
  get deletedRoutes(): readonly string[] {
    return this.#deleted?.texts ?? [];
  }

  /**
   * Notes that a route is mounted. The session vouches for its calls from then on, and no call to it
   * is answered before that is recorded. Session and record begin before: within their first minute,
   * routes count as mounted from the beginning.
   */
  mount(route: string): void {
    if (this.#mounted.has(route)) return;
    this.#addMounted([route]);
    if (this.#registered !== undefined) void this.flush();
  }

  #addMounted(routes: readonly string[]): void {
    if (routes.length > 0) this.#mountedAt ??= this.#lifetime();
    for (const route of routes) this.#mounted.add(route);
  }

  get #mounts(): Mounts {
    const entries = Object.entries(this.#options.policies);
    const mounted = entries.filter(([route]) => this.#mounted.has(route));
    const others = entries.filter(([route]) => !this.#mounted.has(route));
    return {
      policies: Object.fromEntries(mounted),
      unmounted: others.length > 0 ? Object.fromEntries(others) : undefined,
    };
  }

  /** Whether the session has every route that is mounted. */
  get #hasRecordedMounts(): boolean {
    const { policies = {} } = this.#registered?.session ?? {};
    return [...this.#mounted].every((route) => Object.hasOwn(policies, route));
  }

  /** Says which routes were not mounted within a minute, though others were. */
  get #unmountedFault(): string | undefined {
    const left = Object.keys(this.#mounts.unmounted ?? {});
    const isEarly = this.#lifetime() - (this.#mountedAt ?? Infinity) < MOUNTING_MS;
    if (left.length === 0 || this.#mountedAt === undefined || isEarly) return undefined;
    return `${left.join(", ")}: not mounted, so calls are not counted`;
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
      this.#logFault(error);
    }
    this.#schedule.start();
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

  /** Opens the ledger, reads the holds, and begins the process's first session. */
  async #register(): Promise<Registered> {
    const { ledger } = this.#options;
    const opened = typeof ledger === "function" ? await ledger() : ledger;
    const { now } = await opened.time();
    this.#learn(await opened.holds());
    for await (const { client } of opened.usage(dayOf(now - KNOWN_DAYS * DAY_MS))) {
      this.meter.know(client);
    }
    await this.#findDeleted(opened, now);
    const registered = await this.#begin(opened);
    for (const message of this.deletedRoutes) this.#options.log({ event: "warning", message });
    return registered;
  }

  /** Finds routes that are called, but deleted, once a day. */
  async #findDeleted(ledger: Ledger, now: number): Promise<void> {
    const day = dayOf(now);
    if (day === this.#deleted?.day) return;
    const texts = await deletedRoutes(ledger, Object.keys(this.#options.policies));
    this.#deleted = { day, texts };
  }

  /** Flushes the counts so far. Never rejects: faults are logged, and the next flush retries. */
  flush(): Promise<void> {
    return this.#schedule.flush();
  }

  /**
   * Flushes the last counts, and ends the session. Call it after the last response: later calls find
   * no intent. If a call that the ledger did not take may be in flight, the session does not end, so
   * that it looks like one whose process was killed.
   */
  async stop(): Promise<void> {
    this.#schedule.stop();
    const mayMissCall = this.#options.mayServeUnrecorded === true && this.intents.hasUnheldCalls;
    this.intents.close();
    if (mayMissCall) {
      await this.flush();
      return await this.flush(); // deletes an intent that was given up, and landed all the same
    }
    this.#isStopping = true;
    for (let tries = 0; tries < STOP_TRIES; tries++) {
      await this.flush();
      if (this.#registered?.session.ended !== undefined) return;
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
      const registered = this.#registered ?? await this.#registerLate();
      this.#fault = await this.#write(registered, isLast);
    } catch (cause) {
      isRecording = false;
      this.#takeCounts(); // for the metrics, and for the log
      this.#logFault(cause);
    }
    this.#options.metrics?.setRecording(isRecording);
    const message = this.#unmountedFault;
    if (message !== undefined && message !== this.#unmountedText) {
      this.#options.log({ event: "warning", session: this.session, message });
    }
    this.#unmountedText = message;
  }

  /** Registers the process while it serves. */
  async #registerLate(): Promise<Registered> {
    const registered = await this.#register();
    const { process, log } = this.#options;
    log({ event: "session", ...sessionFacts(this.session, process) });
    return registered;
  }

  #logFault(cause: unknown): void {
    this.#faults.log(cause, { session: this.session, unrecorded: this.unrecorded() });
    const reason = this.isRegistered ? "the ledger fails" : "the process is not registered yet";
    this.#fault = `no record of calls: ${reason} (see the log)`;
  }

  #takeCounts(): void {
    const counts = this.meter.take(this.#options.clock());
    this.#options.metrics?.add(counts);
    this.#backlog.add(counts);
  }

  /**
   * Writes all counts to the ledger. Returns the fault for the health check, if any.
   *
   * @param begun The number of sessions that this flush has begun.
   */
  async #write(
    registered: Registered,
    isLast: boolean,
    begun = 0,
  ): Promise<string | undefined> {
    // As where two databases answer at one address in turns.
    if (begun > MAX_SESSIONS) throw new StorageError("usage", "the ledger changes with each use");
    if (this.#sent !== undefined) ({ registered } = await this.#send(this.#sent, registered));
    if (registered.session.ended !== undefined) return undefined; // it has stopped
    registered = await this.#recordMounts(registered);

    // The heartbeat settles the calls that came before its time, so that time is read before the
    // counts are taken. No call may be dated before it was answered, so calls are dated with a time
    // that is read afterwards. An idle process needs neither.
    const { ledger } = registered;
    const readTime = () => registered.lived.read(() => ledger.time());
    const mayHaveIntents = !this.intents.isEmpty;
    const before = mayHaveIntents ? await readTime() : undefined;
    this.#takeCounts();
    const pending = this.intents.takeHeartbeat();
    const { session: { sequence } } = registered;
    const intents = before && { at: before.now, sequence, ...pending.intents };
    let time = this.#backlog.isEmpty ? before : await readTime();

    // Counts are recorded before a session lapses, but do not extend it. Another session has what is
    // left, and a heartbeat of its own. So it has a route that is mounted late.
    for (let isHeartbeat = false; !isHeartbeat;) {
      const counts = this.#backlog.takePart();
      const { lived: { hasLapsed }, session } = registered;
      const isOver = hasLapsed || !this.#hasRecordedMounts;
      if (isOver && counts.length === 0) {
        registered = await this.#begin(ledger, { lapsed: session });
        return await this.#write(registered, isLast, begun + 1);
      }
      isHeartbeat = this.#backlog.isEmpty && !isOver;
      const heartbeat = isHeartbeat ? { intents, isStopped: isLast } : undefined;
      const sent = await this.#send({ counts, at: time?.now ?? 0, heartbeat, pending }, registered);
      registered = sent.registered;
      if (!sent.isRecorded) return await this.#write(registered, isLast, begun + 1);
      time = sent.time ?? time;
      if (!isHeartbeat) await yieldToRequests();
    }
    if (time === undefined) return undefined;
    const fault = this.#compareClocks(time); // at once, because deleting can take long
    if (!isLast) {
      await this.#retention.apply(ledger, time.now);
      await this.#findDeleted(ledger, time.now);
    }
    return fault;
  }

  /** Records which routes are mounted, if the session is so young that it may have them. */
  async #recordMounts(registered: Registered): Promise<Registered> {
    const { ledger, session, began } = registered;
    if (this.#hasRecordedMounts || this.#lifetime() - began >= MOUNTING_MS) return registered;
    const mounts = this.#mounts;
    if (!await ledger.mount(session, mounts)) return registered;
    return this.#registered = { ...registered, session: { ...session, ...mounts } };
  }

  /**
   * Sends a part. If it was not recorded, puts its counts back, and begins another session.
   *
   * @returns Whether the part was recorded, and the ledger's times then, if they are known.
   */
  async #send(part: SentPart, registered: Registered): Promise<SendResult> {
    const { ledger, session, lived } = registered;
    const isRepeated = this.#sent === part;
    this.#sent = part;
    const time = await lived.read(() => ledger.add(part, session, lived.end()));
    this.#learn(time?.holds);
    if (time === undefined) {
      // Only the sequence number says whether an earlier attempt was committed.
      const found = await ledger.session(session.id);
      if (!isRepeated || found?.sequence !== session.sequence + 1) {
        this.#sent = undefined;
        this.#backlog.add(part.counts);
        return { registered: await this.#beginAgain(registered, found), isRecorded: false };
      }
    }
    this.#sent = undefined;
    const { heartbeat, pending } = part;
    if (heartbeat?.intents !== undefined) this.intents.confirm(pending);
    this.#registered = {
      ...registered,
      session: {
        ...session,
        sequence: session.sequence + 1,
        reported: heartbeat && time ? time.now : session.reported,
        ended: heartbeat?.isStopped ? "stopped" : undefined,
      },
    };
    return { registered: this.#registered, isRecorded: true, time };
  }

  /** Begins another session, because the ledger has the process's session in another state. */
  async #beginAgain(
    { ledger, session: left }: Registered,
    found: Session | undefined,
  ): Promise<Registered> {
    if (found?.sequence !== left.sequence) return await this.#begin(ledger, { lost: left }, LOST);
    // If it has not ended, the machine slept, the database failed over, or a restart of the record
    // set the last heartbeat back.
    return await this.#begin(ledger, found.ended === undefined ? { lapsed: left } : {});
  }

  /**
   * Begins a session. Logs it, unless it is the process's first: that one is for the caller to log.
   *
   * @param warning Why another session was necessary, if the operator should know.
   */
  async #begin(
    ledger: Ledger,
    options: BeginOptions = {},
    warning?: string,
  ): Promise<Registered> {
    const left = this.#registered;
    // A session that continues an earlier one has the counts of what the process answered before.
    const next = this.#next = {
      ...this.#next ?? newSession(this.#options, this.#mounts, 1),
      ...this.#mounts,
    };
    const begun = await ledger.begin(next, options);
    if (begun === undefined && left !== undefined) {
      return await this.#beginAgain(left, await ledger.session(left.session.id));
    }
    const { began, timeline, intents } = begun as BegunSession;
    this.#next = undefined;
    this.#registered = {
      ledger,
      session: { ...next, began, timeline, reported: began },
      lived: new LivedTime(began, this.#lifetime),
      began: this.#lifetime(),
    };
    if (left === undefined) return this.#registered;
    this.intents.keepOnly(options.lost === undefined ? intents : []);
    const facts = sessionFacts(next.id, this.#options.process);
    this.#options.log(
      warning ? { event: "warning", ...facts, message: warning } : { event: "session", ...facts },
    );
    return this.#registered;
  }

  /** Logs and returns a fault if this machine's clock differs from the database's. */
  #compareClocks({ databaseTime }: LedgerTime): string | undefined {
    const fault = clockFault({ here: this.#options.clock(), inDatabase: databaseTime });
    if (fault === undefined) return undefined;
    this.#faults.log(fault, { session: this.session }, { kind: "clocks differ" });
    return "the clock here is not the database's (see the log)";
  }
}

function newSession(options: RecorderOptions, mounts: Mounts, sequence: number): NewSession {
  const { process, mayServeUnrecorded, publicUrl, contact, retainDays } = options;
  const id = crypto.randomUUID();
  return { id, ...mounts, process, mayServeUnrecorded, publicUrl, contact, retainDays, sequence };
}

const REFUSED = "calls to old paths are refused: the ledger does not take them (see the log)";

const LOST = "The ledger does not have this process's last heartbeat, as if it had been " +
  "restored, replaced or copied. The record of calls starts again in a day: until then, other " +
  "servers may answer calls under intents that it does not have";

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
