/**
 * Processes that count calls, the ledgers they write to, and the ways between them, in virtual time.
 * The world knows every call that was answered.
 */

import { OneConnection } from "../../lib/database/postgres/one_connection.ts";
import type { Database, Statement } from "../../lib/database/sql/database.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import type { Interval } from "../../lib/lifecycle/instant.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { Ledger } from "../../lib/usage/record/ledger.ts";
import { Recorder } from "../../lib/usage/record/recorder.ts";
import { readAllSessions } from "../../lib/usage/verdict/evidence.ts";
import { reportUsage } from "../../lib/usage/verdict/report.ts";
import { ANSWER } from "./counted_call.ts";

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export const ROUTES = ["/a", "/b", "/c", "/d", "/e", "/f"] as const;
const POLICY = definePolicy({ deprecatedAt: "2027-01-01" });
const ANNOUNCED = definePolicy({ deprecatedAt: "2027-01-01", sunsetAt: "2029-01-01" });

const TABLES = ["usage", "day", "session", "hold", "ledger"].map((name) => `media_head_${name}`);

/** Lets everything happen that waits for nothing but promises. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Event {
  readonly at: number;
  readonly happen: () => unknown;
}

/** A queue of events, and the time until which they have happened. */
class VirtualEvents {
  /** In milliseconds since the epoch. */
  now: number;
  /** The next one comes last. */
  readonly #queue: Event[] = [];

  constructor(now: number) {
    this.now = now;
  }

  /** Arranges an event, after those of the same time. If it takes real time, others wait for it. */
  at(at: number, happen: () => unknown): void {
    let [low, high] = [0, this.#queue.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#queue[middle] as Event).at > at) low = middle + 1;
      else high = middle;
    }
    this.#queue.splice(low, 0, { at: Math.max(at, this.now), happen });
  }

  /** Lets milliseconds pass. */
  async pass(time: number): Promise<void> {
    const end = this.now + time;
    await settle();
    while (await this.#next(end));
    this.now = end;
  }

  /** Lets as much time pass as a promise takes. */
  async during<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const end = () => isSettled = true;
    promise.then(end, end);
    await settle();
    while (!isSettled && await this.#next(Infinity));
    if (!isSettled) throw new Error("Nothing is left that the promise could wait for");
    return await promise;
  }

  /** Lets the next event happen if it is due by then. Returns whether there was one. */
  async #next(end: number): Promise<boolean> {
    const next = this.#queue.at(-1);
    if (next === undefined || next.at > end) return false;
    this.#queue.pop();
    this.now = next.at;
    await next.happen();
    await settle();
    return true;
  }
}

/** A database that holds a ledger, whose clock is that of the world. */
export interface WorldDatabase {
  readonly database: Database;
  /** Dates a statement, at the time at which it is run. */
  readonly dated: (statement: Statement, now: number) => Statement;
  /** Called before a statement is run. */
  readonly setTime: (now: number) => void;
  /** The time, as an SQL expression. */
  readonly currentTime: string;
}

/** A call that was answered. Instants are in milliseconds since the epoch, by the ledger's time. */
export interface Call {
  readonly process: Process;
  readonly route: string;
  readonly arrived: number;
  /** When it was answered. */
  readonly at: number;
  /** The same, brought back with everything else when the ledger's time went back. */
  answered: number;
  /** Whether it was counted, as a call to a route that is mounted. */
  readonly isCounted: boolean;
  /** The client, as it is on record. Most call once. */
  readonly client: string;
}

/** What becomes of a statement, or of a transaction, in milliseconds. */
export interface Fate {
  /** How long after it was sent it is done; left out if it never is. */
  readonly done?: number | undefined;
  /** How long after that its outcome is heard; left out if it never is. */
  readonly heard?: number | undefined;
  /** How long after it was sent the connection breaks; left out if it hangs. */
  readonly broken?: number | undefined;
}

/** The fate of most. */
const PROMPT: Fate = { done: 100, heard: 50 };

/** The fate of what is sent from a process that is cut off. */
const CUT: Fate = { broken: 100 };

/** The outcome of a question to the gate. */
export interface Answer {
  readonly report: Awaited<ReturnType<typeof reportUsage>>;
  readonly records: Awaited<ReturnType<typeof readAllSessions>>;
}

/** A ledger, in a database whose clock may jump, and which may be restored. */
export class WorldRecord {
  readonly world: World;
  readonly name: string;
  /** The ledger, as nobody in the world reaches it: without a way. */
  readonly ledger: Ledger;
  readonly #database: WorldDatabase;
  /** How far its clock is ahead. */
  #ahead = 0;
  /** The latest report, if the clock has jumped. */
  #latest: number | undefined;
  #started: number | undefined;
  /** When the tables were saved, and the calls before that. */
  #saved: { readonly time: number; readonly answered: ReadonlyMap<Call, number> } | undefined;
  restores = 0;
  jumps = 0;
  /** When the clock was last set back, by the world's time. */
  setBack = -Infinity;
  /** Until when nothing reaches it. */
  down = 0;

  constructor(world: World, name: string, database: WorldDatabase) {
    this.world = world;
    this.name = name;
    this.#database = database;
    this.ledger = new Ledger(this.reachedBy((action) => this.do(action)));
  }

  /** The ledger's time. */
  get time(): number {
    return Math.max(this.#clock, this.#latest ?? -Infinity);
  }

  get #clock(): number {
    return Math.floor(this.world.now + this.#ahead);
  }

  /** Returns the database for somebody who reaches it on a way. */
  reachedBy(send: <T>(action: () => Promise<T>, isCommit: boolean) => Promise<T>): Database {
    const { database, dated, currentTime } = this.#database;
    const query = (statement: Statement) =>
      send(() => database.query(dated(statement, this.#clock)), false);
    return {
      currentTime,
      batch: database.batch,
      dayOf: (instant) => database.dayOf(instant),
      listOf: (columns) => database.listOf(columns),
      rowsOf: (...rows) => database.rowsOf(...rows),
      query,
      queryAfterChanges: query,
      transact: (statements, options) =>
        send(() => {
          const all = statements.map((statement) => dated(statement, this.#clock));
          return database.transact(all, options);
        }, true),
    };
  }

  /** Does something in the database now. */
  async do<T>(action: () => Promise<T>): Promise<T> {
    this.#database.setTime(this.#clock);
    const result = await action();
    if (this.#latest !== undefined) await this.#note();
    return result;
  }

  /** Saves the tables, as for a backup, or as a replica that falls behind has them. */
  async save(): Promise<void> {
    await this.#run(TABLES.flatMap((name) => [
      `DELETE FROM copy_${name}`,
      `INSERT INTO copy_${name} SELECT * FROM ${name}`,
    ]));
    const answered = new Map(this.#calls.map((call) => [call, call.answered]));
    this.#saved = { time: this.time, answered };
  }

  /** Puts the saved tables in place of the present ones. */
  async restore(): Promise<void> {
    if (this.#saved === undefined) return;
    this.restores++;
    await this.#run(TABLES.flatMap((name) => [
      `DELETE FROM ${name}`,
      `INSERT INTO ${name} SELECT * FROM copy_${name}`,
    ]));
    const { time, answered } = this.#saved;
    for (const call of this.#calls) call.answered = answered.get(call) ?? Math.max(call.at, time);
    if (this.#latest !== undefined) await this.#note();
  }

  /** Sets the database's clock on, or back. */
  async jump(by: number): Promise<void> {
    this.#ahead += by;
    this.jumps++;
    if (by < 0) this.setBack = this.world.now;
    await this.#note();
  }

  /** Empties the tables. */
  async clear(): Promise<void> {
    const tables = TABLES.filter((name) => name !== "media_head_ledger");
    await this.#run([
      ...tables.map((name) => `DELETE FROM ${name}`),
      "UPDATE media_head_ledger SET started = NULL",
      ...TABLES.map((name) => `DROP TABLE IF EXISTS copy_${name}`),
      ...TABLES.map((name) => `CREATE TABLE copy_${name} AS SELECT * FROM ${name}`),
    ]);
  }

  async #run(texts: readonly string[]): Promise<void> {
    await this.#database.database.transact(texts.map((text) => ({ text })));
  }

  /**
   * Notes the latest report. No call was answered later than now, nor than the record started again
   * since.
   */
  async #note(): Promise<void> {
    const text = `SELECT (SELECT max(reported) FROM media_head_session) AS latest, started
      FROM media_head_ledger`;
    const [row] = await this.#database.database.query({ text });
    this.#latest = row?.["latest"] as number | null ?? -Infinity;
    const started = row?.["started"] as number | null ?? -Infinity;
    const isNew = started !== this.#started && started > this.#clock - HOUR; // not by retention
    this.#started = started;
    const limit = isNew ? Math.min(this.time, started) : this.time;
    for (const call of this.#calls) call.answered = Math.min(call.answered, limit);
  }

  get #calls(): Call[] {
    return this.world.calls.filter(({ process }) => process.record === this);
  }
}

interface ProcessOptions {
  readonly record?: WorldRecord;
  readonly onDemand?: boolean;
  readonly retainDays?: number;
  /** The routes that it may mount later. By default, it counts all of them from the start. */
  readonly mounts?: readonly string[];
  /** The routes that it serves without counting them. */
  readonly serves?: readonly string[];
  /** What becomes of what it sends. */
  readonly fate?: (process: Process) => Fate;
}

let processes = 0;

/** A process that counts calls. */
export class Process {
  readonly world: World;
  readonly record: WorldRecord;
  readonly recorder: Recorder;
  readonly number: number;
  readonly options: ProcessOptions;
  /** The routes that it counts, and when it mounted them, by the ledger's time. */
  readonly mounted: Map<string, number>;
  readonly began: number;
  ended = Infinity;
  /** When its machine slept. */
  readonly sleeps: Interval[] = [];
  /** When it was suspended, or its machine slept. */
  readonly freezes: Interval[] = [];
  /** Whether it has started to listen. */
  isListening = false;
  /** The fates of what it sends next, before any others. */
  readonly fates: Fate[] = [];
  /** The same, of transactions only. */
  readonly commits: Fate[] = [];
  /** Until when nothing reaches the ledger from it. */
  cut = 0;
  /** The warnings in its log that the ledger had lost something. */
  losses = 0;
  /** The process has its own connection to the database's server. */
  readonly #server = `process ${++processes}`;
  #stillUntil = 0;

  constructor(world: World, options: ProcessOptions) {
    const { record = world.records[0] as WorldRecord, mounts } = options;
    this.world = world;
    this.record = record;
    this.options = options;
    this.number = world.processes.length;
    this.began = world.now;
    this.mounted = new Map(mounts === undefined ? ROUTES.map((route) => [route, record.time]) : []);
    this.recorder = new Recorder({
      open: () => this.#open(),
      policies: Object.fromEntries(
        (mounts ?? ROUTES).map((route) => [route, route === "/f" ? ANNOUNCED : POLICY]),
      ),
      isMountedLater: mounts !== undefined,
      process: { machine: "web-1", pid: this.number, started: Math.floor(world.now) },
      onDemand: options.onDemand ?? false,
      retainDays: options.retainDays ?? 30,
      clock: () => world.now,
      lifetime: () => this.lifetime,
      log: ({ event, message }) => {
        if (event === "warning" && /^The ledger does not have/.test(`${message}`)) this.losses++;
      },
    });
    this.freeze(world.skipped - world.now);
    this.act(async () => {
      await this.recorder.start();
      this.isListening = true;
    });
  }

  /** Whether it was neither stopped nor killed. */
  get isAlive(): boolean {
    return this.ended === Infinity;
  }

  /** The milliseconds that it has lived. */
  get lifetime(): number {
    const slept = this.sleeps.reduce((sum, { start, end }) => sum + end - start, 0);
    return this.world.now - this.began - slept + 0.25;
  }

  /** Has the process do something, unless it is gone, as soon as it is not frozen. */
  act(action: () => unknown, at = this.world.now): void {
    this.world.events.at(at, () => {
      if (!this.isAlive) return;
      if (this.#stillUntil > this.world.now) return this.act(action, this.#stillUntil);
      this.world.acting = this;
      action(); // not awaited: it may wait for events
    });
  }

  /**
   * Has it answer a call, if it listens.
   *
   * @param lasts How long the call lasts.
   * @param client The client, by default one that has not called before.
   */
  call(route: string, lasts = 0, client?: string): void {
    this.act(() => {
      if (!this.isListening) return;
      const isCounted = this.mounted.has(route);
      if (!isCounted && this.options.serves?.includes(route) !== true) return;
      const arrived = this.record.time;
      if (isCounted) this.recorder.arrive();
      this.act(() => {
        const { calls } = this.world;
        const [id, answered] = [client ?? `c${calls.length}`, this.record.time];
        const facts = { process: this, route, isCounted, client: `id ${id}` };
        calls.push({ ...facts, arrived, at: answered, answered });
        if (!isCounted) return;
        this.recorder.meter.counterFor({ ...ANSWER, route }).count(new Headers(), id);
        this.recorder.leave();
      }, this.world.now + lasts);
    });
  }

  mount(route: string): void {
    this.act(() => {
      this.mounted.set(route, this.record.time);
      this.recorder.mount(route);
    });
  }

  /** Stops it: it calls `close()`, and ends then. */
  stop({ isListening = false, lingers = 0 } = {}): void {
    this.act(async () => {
      this.isListening = isListening;
      await this.recorder.close();
      this.act(() => this.kill(), this.world.now + lingers);
    });
  }

  /** Ends it without a word. */
  kill(): void {
    this.ended = Math.min(this.ended, this.world.now);
  }

  /** Suspends it for some milliseconds. */
  freeze(time: number): void {
    const [start, end] = [this.world.now, this.world.now + time];
    if (time > 0) this.freezes.push({ start, end });
    this.#stillUntil = Math.max(this.#stillUntil, end);
  }

  /** Suspends its machine, whose monotonic clock stands still. */
  sleep(time: number): void {
    const start = Math.max(this.world.now, this.sleeps.at(-1)?.end ?? 0);
    const end = this.world.now + time;
    if (start < end) this.sleeps.push({ start, end });
    this.freeze(time);
  }

  async #open() {
    const connection = new OneConnection(this.#server, () => CLIENT, (cause) => cause as Error);
    const send = async <T>(action: () => Promise<T>, isCommit: boolean): Promise<T> => {
      try {
        return await connection.use(() => this.#send(action, this.#fateOf(isCommit)));
      } catch (cause) {
        if (cause instanceof StorageError) throw cause;
        throw new StorageError("world", "it cannot be reached", { cause });
      }
    };
    const database = this.record.reachedBy(send);
    await database.query({ text: "SELECT 1 AS one" });
    const checkWriting = () => Promise.resolve();
    return { ledger: new Ledger(database), checkWriting, close: () => connection.close() };
  }

  #fateOf(isCommit: boolean): Fate {
    const next = this.fates.shift() ?? (isCommit ? this.commits.shift() : undefined);
    const usual = this.world.now < this.cut ? CUT : PROMPT;
    return next ?? this.options.fate?.(this) ?? usual;
  }

  #send<T>(action: () => Promise<T>, { done, heard, broken }: Fate): Promise<T> {
    const { world } = this;
    const sent = world.now;
    return new Promise<T>((resolve, reject) => {
      const end = async () => {
        // A report that is minutes late, and from before the clock was set back by as much, looks like
        // one from after it; if its process has died meanwhile, nobody corrects it.
        if (world.now - sent > MINUTE && this.record.setBack > sent) return;
        const outcome = await this.record.do(action).then(
          (result) => () => resolve(result),
          (error) => {
            world.faults.push(`the database: ${error} ${error.cause}`);
            return () => reject(error);
          },
        );
        if (heard !== undefined) this.act(outcome, world.now + heard);
      };
      if (done !== undefined) world.events.at(world.now + done, end);
      const breakOff = () => reject(new StorageError("world", "the connection broke"));
      if (broken !== undefined) this.act(breakOff, world.now + broken);
    });
  }
}

/** A connection that can always be opened. What is sent on it has its own fate. */
const CLIENT = {
  on() {},
  connect: (done: (error: null) => void) => done(null),
  end: () => Promise.resolve(),
  connection: { stream: { unref() {}, destroy() {} } },
} as unknown as ConstructorParameters<typeof OneConnection>[1] extends () => infer Client ? Client
  : never;

export class World implements Disposable {
  readonly events: VirtualEvents;
  readonly records: WorldRecord[];
  readonly processes: Process[] = [];
  /** The process whose code runs. */
  acting: Process | undefined;
  /** Until when all processes are frozen. */
  skipped = 0;
  /** The calls that were answered. */
  readonly calls: Call[] = [];
  /** What is wrong. */
  readonly faults: string[] = [];
  readonly #stubs = new DisposableStack();

  private constructor(now: number, databases: readonly WorldDatabase[]) {
    this.events = new VirtualEvents(now);
    this.records = databases.map((database, index) =>
      new WorldRecord(this, `record ${index}`, database)
    );
    const replace = (object: object, name: string, value: unknown) => {
      const original = Reflect.get(object, name);
      Reflect.set(object, name, value);
      this.#stubs.defer(() => void Reflect.set(object, name, original));
    };
    let ids = 0;
    replace(globalThis, "setTimeout", (run: () => void, delay = 0, ...args: never[]) => {
      return this.#setTimeout(() => (run as (...args: never[]) => void)(...args), delay);
    });
    replace(globalThis, "clearTimeout", (timer?: Timer) => timer && (timer.isCleared = true));
    replace(performance, "now", () => this.acting?.lifetime ?? this.now);
    replace(Date, "now", () => this.now);
    replace(crypto, "randomUUID", () => {
      const suffix = `${++ids}`.padStart(12, "0");
      return `00000000-0000-4000-8000-${suffix}`;
    });
  }

  /** Opens a world, with an empty record in each of the databases. */
  static async open(now: number, databases: readonly WorldDatabase[]): Promise<World> {
    const world = new World(now, databases);
    for (const record of world.records) await record.clear();
    return world;
  }

  [Symbol.dispose](): void {
    this.#stubs.dispose();
  }

  get now(): number {
    return this.events.now;
  }

  /** The processes that are there. */
  get alive(): Process[] {
    return this.processes.filter(({ isAlive }) => isAlive);
  }

  start(options: ProcessOptions = {}): Process {
    const process = new Process(this, options);
    this.processes.push(process);
    return process;
  }

  /** Lets milliseconds pass. */
  async pass(time: number): Promise<void> {
    await this.events.pass(time);
  }

  /** Lets milliseconds pass in which all processes are frozen. */
  async skip(time: number): Promise<void> {
    this.skipped = this.now + time;
    for (const process of this.alive) process.freeze(time);
    await this.pass(time);
  }

  /** Asks the gate, as an operator does. */
  async ask(days = 1): Promise<Answer> {
    this.acting = undefined;
    const sources = this.records.map((record) => {
      const send = <T>(action: () => Promise<T>) =>
        new Promise<T>((resolve, reject) => {
          this.events.at(this.now + 10, () => {
            this.acting = undefined;
            return record.do(action).then(resolve, reject);
          });
        });
      return { ledger: new Ledger(record.reachedBy(send)), name: record.name };
    });
    const records = await readAllSessions(sources);
    return { records, report: await reportUsage(sources, records, { days }) };
  }

  #setTimeout(run: () => void, delay: number): Timer {
    const timer: Timer = { isCleared: false, unref() {} };
    const owner = this.acting;
    if (owner === undefined) {
      this.events.at(this.now + delay, () => timer.isCleared || run());
      return timer;
    }
    const due = owner.lifetime + delay;
    const elapse = () => {
      if (timer.isCleared) return;
      if (owner.lifetime >= due) run();
      else owner.act(elapse, this.now + due - owner.lifetime); // its machine slept
    };
    owner.act(elapse, this.now + delay);
    return timer;
  }
}

interface Timer {
  isCleared: boolean;
  unref(): void;
}
