/**
 * Servers, their database and its operator on clocks of the test's. The world knows every call that
 * was answered, and of each ledger what the operator can know.
 */

import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { Database, Row } from "../../lib/database/sql/database.ts";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import type { Ledger } from "../../lib/usage/record/ledger.ts";
import { Recorder } from "../../lib/usage/record/recorder.ts";
import { type FlushPart, lagOf, type Session } from "../../lib/usage/record/records.ts";
import { declareGone } from "../../lib/usage/verdict/declarations.ts";
import { reportUsage } from "../../lib/usage/verdict/report.ts";
import { endOf, isSilent } from "../../lib/usage/verdict/session_state.ts";
import type { Verdict } from "../../lib/usage/verdict/verdict.ts";
import { countOne, NOON, PROCESS } from "./counted_call.ts";
import { ledgerAt, openLedgerDatabase } from "./ledger_at.ts";
import { PROGRAM } from "./usage_report.ts";

const [MINUTE, HOUR] = [60_000, 3_600_000];
/** Within so many milliseconds, the first call of a client is flushed. */
const AT_ONCE = 100;
const TABLES = ["media_head_usage", "media_head_session", "media_head_ledger"];
const POLICY = definePolicy({ deprecatedAt: "2027-01-01" });
export const [AUDIO, VIDEO] = ["/audio/:token", "/video/:token"] as const;

interface Call {
  readonly at: number;
  readonly route: string;
  readonly client: string;
  /** Tells the call from the client's others. */
  readonly release: string;
}

type State = "runs" | "is suspended" | "sleeps" | "is gone";

/** Whether the database is reached. With "unheard", one more commit is, but not its outcome. */
type Link = "up" | "unheard" | "down";

class Server {
  recorder!: Recorder;
  state: State = "runs";
  lived = 0;
  clock = 0;
  /** The flushes of which it knows the outcome. */
  contacts = 0;
  readonly calls: Call[] = [];
  /** When the flush began whose part is sent, perhaps again. */
  sentFrom: number | undefined;
  /** Runs the timer of a first call, which flushes. */
  asked: (() => void) | undefined;
  /** When it ended. */
  endedAt: number | undefined;
  /** How much earlier than that the operator said, at most, in milliseconds; if he said anything. */
  early: number | undefined;

  /**
   * @param routes Those that it counts. It answers the others, too.
   * @param flushed When its last flush began, or its registration.
   */
  constructor(
    readonly routes: readonly string[],
    public node: Node,
    public link: Link,
    public flushed: number,
  ) {}
}

/** What is true of a ledger. */
interface Truth {
  /** The flushes of each process that the ledger has; of those that are not registered in it, none. */
  readonly contacts: Map<Server, number>;
  /** When the last flush of each process began of which the ledger has something. */
  readonly flushes: Map<Server, number>;
  /** How many calls of each process are on record, or were answered before the record's start. */
  readonly settled: Map<Server, number>;
  /** Processes that had ended when their registration was undone, and the last report of others then. */
  readonly undone: { readonly servers: Set<Server>; readonly since: number };
  /** Whether, since the record's start, it was restored, or its clock jumped by a minute or more. */
  isDoubtful: boolean;
}

interface Node {
  readonly database: Database & AsyncDisposable;
  readonly ledger: Ledger;
  truth: Truth;
  /** How far the database's clock is ahead. */
  offset: number;
  /** Whether it runs at half speed until it is right. */
  isSlowed: boolean;
}

interface Copy {
  readonly tables: readonly (readonly Row[])[];
  readonly truth: Truth;
}

export class World {
  #now = NOON + 12 * HOUR - 30_000; // before midnight
  #node!: Node;
  #copy!: Copy;
  readonly #nodes: Node[] = [];
  readonly #slots = new Map<number, Server>();
  readonly #servers: Server[] = [];
  readonly #owners = new Map<string, Server>();
  readonly #jumps: { readonly at: number; readonly by: number }[] = [];
  /** The server that answers while it flushes: a call between any two statements. */
  #busy = -1;
  /** The server that counts a call. */
  #counting: Server | undefined;
  #timers!: Disposable;

  static async open(): Promise<World> {
    const world = new World();
    const { setTimeout } = globalThis;
    const start = (run: () => void, delay = 0) => {
      if (world.#counting === undefined) return setTimeout(run, delay);
      world.#counting.asked = run;
      return { unref() {} };
    };
    world.#timers = stub(globalThis, "setTimeout", start as typeof setTimeout);
    world.#node = await world.#newNode(0);
    await world.copy();
    return world;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timers[Symbol.dispose]();
    for (const { database } of this.#nodes) await database[Symbol.asyncDispose]();
  }

  /** Starts a server, unless it runs. One that cannot register serves nothing. */
  async start(
    slot: number,
    routes: readonly string[] = [AUDIO, VIDEO],
    link: Link = "up",
  ): Promise<void> {
    if (this.#slots.has(slot)) return;
    const server = new Server(routes, this.#node, link, this.#now);
    const ledger = ledgerAt(this.#reachedBy(server, slot), () => this.#now + server.node.offset);
    const begin = ledger.begin.bind(ledger);
    ledger.begin = (session, options) => {
      this.#owners.set(session.id, server);
      return begin(session, options);
    };
    const add = ledger.add.bind(ledger);
    const flushed = new WeakMap<FlushPart, number>();
    ledger.add = (part, session) => {
      server.sentFrom = flushed.get(part) ?? server.flushed;
      flushed.set(part, server.sentFrom);
      return add(part, session).finally(() => server.sentFrom = undefined);
    };
    server.recorder = new Recorder({
      ledger,
      policies: Object.fromEntries(routes.map((route) => [route, POLICY])),
      process: PROCESS,
      retainDays: 3,
      clock: () => this.#now + server.clock,
      lifetime: () => server.lived,
      log() {},
    });
    try {
      await server.recorder.start();
      this.#slots.set(slot, server);
      this.#servers.push(server);
      const { truth: { contacts, undone }, offset } = server.node;
      contacts.set(server, 0);
      // Less than a minute without a session is no stop.
      if (Math.abs(this.#now + offset - undone.since) < MINUTE) undone.servers.clear();
    } catch (error) {
      assert(error instanceof StorageError && link !== "up");
      server.state = "is gone";
      server.endedAt = this.#now;
    }
  }

  /** Has a server answer a call: by a client that has not called before, or by one of a few. */
  call(slot: number, route: string = AUDIO, isNew = true): void {
    const server = this.#running(slot);
    if (server === undefined) return;
    const number = this.#servers.reduce((sum, { calls }) => sum + calls.length, 0);
    // The releases of one client that are recorded in a day are few, too.
    const name = isNew ? `New-${lettersOf(number)}` : `Old-${lettersOf(Math.floor(number / 10))}`;
    server.calls.push({ at: this.#now, route, client: `app ${name}`, release: `${number}` });
    if (!server.routes.includes(route)) return;
    this.#counting = server;
    countOne(server.recorder.meter, { userAgent: `${name}/${number}`, route });
    this.#counting = undefined;
    if (isNew) assert(server.asked !== undefined, "a first call asks for a flush");
  }

  /**
   * Lets time pass. Every server that runs flushes for its first calls, and from five seconds on,
   * in any case.
   *
   * @throws {AssertionError} If a client that called first is not on record then.
   */
  async pass(time: number): Promise<void> {
    this.#advance(Math.min(time, AT_ONCE));
    for (const slot of this.#slots.keys()) {
      const server = this.#running(slot);
      const ask = server?.asked;
      if (server === undefined || ask === undefined) continue;
      server.asked = undefined;
      const [isReached, { node: { ledger } }, called] = [server.link === "up", server, [
        ...server.calls,
      ]];
      await this.#flush(server, () => {
        ask();
        return server.recorder.flush(); // which is the same
      });
      for (const { client, route } of isReached ? called.slice(-1) : []) {
        if (!server.routes.includes(route)) continue;
        assert(await ledger.hasClient(client), `a crash can hide ${client}`);
      }
    }
    this.#advance(time - Math.min(time, AT_ONCE));
    for (const slot of time < 5_000 ? [] : [...this.#slots.keys()]) {
      const server = this.#running(slot);
      if (server !== undefined) await this.#flush(server, () => server.recorder.flush());
    }
  }

  /** Stops a server: cleanly, if it reaches the database. */
  async stop(slot: number): Promise<void> {
    const server = this.#running(slot);
    if (this.#busy === slot) this.#busy = -1; // nothing is answered after the last flush
    if (server?.link === "up") await this.#flush(server, () => server.recorder.stop());
    if (server !== undefined) this.crash(slot);
  }

  /** Kills a server, if wished just after it has answered a call. */
  crash(slot: number, hasJustAnswered = false): void {
    if (hasJustAnswered) this.call(slot);
    const server = this.#slots.get(slot);
    if (server !== undefined) Object.assign(server, { state: "is gone", endedAt: this.#now });
    this.#slots.delete(slot);
  }

  /** Suspends a server, wakes it, cuts it off, connects it, or sets its clock. */
  set(slot: number, change: { state?: State; link?: Link; clock?: number }): void {
    const server = this.#slots.get(slot);
    if (server === undefined) return;
    Object.assign(server, change);
    if (change.link === "up") server.node = this.#node;
  }

  answerWhileFlushing(slot: number): void {
    this.#busy = slot;
  }

  /** Sets the database's clock on, or back. */
  jump(by: number): void {
    this.#node.offset += by;
    this.#jumps.push({ at: this.#now, by });
    if (Math.abs(by) >= MINUTE) this.#node.truth.isDoubtful = true;
  }

  /** Sets the database's clock right if it is ahead: at once, or gradually. */
  setBack(isGradual: boolean): void {
    const { offset, truth } = this.#node;
    if (offset <= 0) return;
    if (!isGradual) return this.jump(-offset);
    this.#node.isSlowed = true;
    if (offset >= MINUTE) truth.isDoubtful = true;
  }

  /** Copies the database: a backup, or a replica that falls behind from now on. */
  async copy(): Promise<void> {
    const { database, truth } = this.#node;
    const tables: (readonly Row[])[] = [];
    for (const name of TABLES) {
      tables.push(await database.query({ text: `SELECT * FROM ${name}` }));
    }
    this.#copy = { tables, truth: copyOf(truth) };
  }

  async restore(replaced: Truth = this.#node.truth): Promise<void> {
    for (const [index, name] of TABLES.entries()) {
      const statements = this.#copy.tables[index]?.map((row) => {
        const columns = Object.keys(row);
        const text = `INSERT INTO ${name} (${columns.join()}) VALUES (${
          columns.map((_, at) => `$${at + 1}`).join()
        })`;
        return { text, values: Object.values(row) };
      });
      await this.#node.database.transact([{ text: `DELETE FROM ${name}` }, ...statements ?? []]);
    }
    const truth = copyOf(this.#copy.truth);
    // No record can know what a process did of which it has nothing, if another one covers that time.
    const isCovered = [...this.#slots.values()].some((server) =>
      truth.contacts.get(server) === server.contacts
    );
    const ended = [...replaced.contacts.keys(), ...replaced.undone.servers].filter((server) =>
      server.state === "is gone" && !truth.contacts.has(server) && !isCovered
    );
    const reports = this.#copy.tables[1]?.map(({ reported }) => Number(reported)) ?? [];
    const undone = { servers: new Set(ended), since: Math.max(...reports) };
    this.#node.truth = { ...truth, undone, isDoubtful: true };
  }

  /** Makes the copy the primary. Connected servers follow it, except those that stay on the old one. */
  async failover(staying: readonly number[] = []): Promise<void> {
    const { offset, truth } = this.#node;
    this.#node = await this.#newNode(offset);
    await this.restore(truth);
    for (const [slot, server] of this.#slots) {
      if (server.link === "up" && !staying.includes(slot)) server.node = this.#node;
    }
  }

  /**
   * The operator says when what is gone had ended.
   *
   * @param late How much later than it had, by a right clock: from less than a minute too early, but
   *   never in the future.
   */
  async gone(late = 0): Promise<void> {
    const { ledger, truth } = this.#node;
    for (const id of await this.#silent()) {
      const server = this.#owners.get(id);
      if (server?.endedAt === undefined) continue;
      const endedBy = Math.min(server.endedAt + late, this.#now);
      try {
        const [session] = await declareGone(ledger, [id], endedBy, () => this.#now) as [Session];
        server.early = Math.max(server.early ?? 0, server.endedAt - endedBy);
        // As after a report, no record can know what a registration within a minute covers.
        const end = endOf(session);
        const begins = (await ledger.sessions()).map(({ began }) => began);
        if (begins.some((began) => Math.abs(began - end) < MINUTE)) truth.undone.servers.clear();
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error; // a machine's clock was ahead
      }
    }
  }

  async restart(): Promise<void> {
    await this.#node.ledger.restart(this.#now);
    this.#settle(this.#node.truth);
  }

  /**
   * Asks whether the routes can be removed, by default whatever calls are on record, with the operator's
   * word for the stops where it is true.
   *
   * @throws {AssertionError} If a call is missing since when the record is said to be complete.
   */
  async gate(
    days: number,
    routes?: readonly string[],
    { waits = 2, atMost = Infinity, mayTrust = true } = {},
  ): Promise<Verdict["state"] | "refused"> {
    const [{ ledger, truth }, at] = [this.#node, this.#now];
    const { now } = await ledger.time();
    for (let wait = 0; wait < waits; wait++) await this.pass(5_000);
    const sessions = await ledger.sessions();
    const trustStops = mayTrust && !truth.isDoubtful;
    const question = {
      routes,
      days,
      now,
      sessions,
      trustStops,
      atMost,
      usageDays: 3,
      program: PROGRAM,
    };
    const report = await reportUsage(ledger, question).catch((error) => {
      if (error instanceof RefusedError) return undefined; // a route that nobody counted yet
      throw error;
    });
    if (report === undefined) return "refused";
    const { verdict: { state }, completeSince = Infinity, judged, clients } = report;
    const from = Date.parse(report.from);
    const isClear = judged.length > 0 && completeSince <= from;
    if (atMost === Infinity) assertEquals(state === "clear", isClear);
    // On record are the calls of any period for which the record is complete.
    const start = Math.max(from, completeSince);
    const releases = clients.flatMap((each) => each.releases);
    const recorded = new Set(
      releases.filter(({ last }) => last >= start).map(({ release }) => release),
    );
    assert(releases.every(({ calls }) => calls === 1), "a call is on record twice");
    for (const server of this.#servers) {
      // No record can know a process whose registration it does not have.
      const isKnown = truth.contacts.has(server) || truth.undone.servers.has(server);
      const calls = isKnown ? server.calls : server.calls.slice(0, truth.settled.get(server) ?? 0);
      for (const call of calls) {
        if (call.at > at || recorded.has(call.release) || !judged.includes(call.route)) continue;
        // After the last report of a process that is gone, less than a minute may be missing, and
        // what the operator's clock was behind.
        const { early } = server;
        const since = call.at - (truth.flushes.get(server) ?? 0);
        if (early !== undefined && since >= 0 && since < MINUTE + early) continue;
        const age = at - call.at + (early ?? 0) + this.#unseenSince(call.at);
        assert(now - age <= start, `call ${call.release} is missing, of ${age / 1000} seconds ago`);
      }
    }
    return state;
  }

  /** Ends all faults. The operator says what is true, and for three days one server runs. */
  async calmDown(): Promise<void> {
    for (const slot of [...this.#slots.keys()]) this.set(slot, { state: "runs", link: "up" });
    this.#busy = -1;
    this.#node.isSlowed = false;
    await this.start(3);
    await this.pass(5_000);
    for (const slot of [0, 1, 2]) await this.stop(slot);
    await this.pass(2 * MINUTE);
    const { ledger } = this.#node;
    if (lagOf(await ledger.time()) >= MINUTE) await this.restart();
    await this.pass(2 * MINUTE); // by now, whatever is gone is silent
    const { now } = await ledger.time();
    if ((await ledger.started() ?? 0) > now) await this.restart();
    await this.gone();
    const isLate = (await ledger.sessions()).some((session) => endOf(session) > now);
    if (isLate || (await this.#silent()).length > 0) { // by a machine's clock that was wrong
      await this.restart();
      await this.gone();
    }
    await this.gate(4);
    await this.pass(72 * HOUR);
    this.#node.truth.isDoubtful = false; // nothing happened since
  }

  async #newNode(offset: number): Promise<Node> {
    const database = await openLedgerDatabase();
    const ledger = ledgerAt(database, () => this.#now + node.offset);
    const undone = { servers: new Set<Server>(), since: 0 };
    const [contacts, flushes, settled] = [new Map(), new Map(), new Map()];
    const truth = { contacts, flushes, settled, undone, isDoubtful: false };
    const node: Node = { database, ledger, truth, offset, isSlowed: false };
    this.#nodes.push(node);
    return node;
  }

  #running(slot: number): Server | undefined {
    const server = this.#slots.get(slot);
    return server?.state === "runs" ? server : undefined;
  }

  #advance(time: number): void {
    this.#now += time;
    for (const node of this.#nodes) {
      node.isSlowed &&= node.offset > 0;
      if (node.isSlowed) node.offset -= Math.min(node.offset, time / 2);
    }
    for (const server of this.#servers) if (server.state !== "sleeps") server.lived += time;
  }

  /** The database as a server reaches it. */
  #reachedBy(server: Server, slot: number): Database {
    const use = async <T>(action: (database: Database) => Promise<T>, isCommit: boolean) => {
      if (server.link === "down") throw new StorageError("sqlite", "down");
      if (this.#busy === slot) {
        this.#advance(1_000);
        this.call(slot, AUDIO, false);
      }
      const result = await action(server.node.database);
      if (!isCommit || server.link === "up") return result;
      server.link = "down";
      throw new StorageError("sqlite", "the outcome is unknown");
    };
    const { database } = this.#node;
    return {
      clock: database.clock,
      batch: database.batch,
      rowsOf: (...args) => database.rowsOf(...args),
      query: (statement) => use((database) => database.query(statement), false),
      queryAfterChanges: (statement) => use((database) => database.query(statement), false),
      transact: (...args) =>
        use(async (database) => {
          const results = await database.transact(...args);
          const isRecorded = results.some((rows) => rows.length > 0);
          const { node: { truth }, sentFrom = server.flushed } = server;
          if (isRecorded) truth.flushes.set(server, sentFrom);
          return results;
        }, true),
    };
  }

  async #flush(server: Server, flush: () => Promise<void>): Promise<void> {
    const isHeard = server.link === "up";
    const before = server.calls.length;
    server.flushed = this.#now;
    await flush();
    if (!isHeard) return;
    const { truth } = server.node;
    // The ledger was restored or replaced since the last flush: the record starts again.
    if (truth.contacts.get(server) !== server.contacts) this.#settle(truth);
    truth.contacts.set(server, ++server.contacts);
    truth.settled.set(server, before);
  }

  #settle(truth: Truth): void {
    for (const server of this.#servers) truth.settled.set(server, server.calls.length);
    truth.isDoubtful = false;
  }

  /** Returns the sessions that can be declared gone. */
  async #silent(): Promise<string[]> {
    const { ledger } = this.#node;
    const time = await ledger.time();
    return (await ledger.sessions())
      .filter((session) => session.ended === undefined && isSilent(session, time))
      .map(({ id }) => id);
  }

  /** The most that jumps that nobody saw can add up to: less than a minute each. */
  #unseenSince(at: number): number {
    return this.#jumps.filter((jump) => jump.at >= at && jump.by > 0)
      .reduce((sum, { by }) => sum + Math.min(by, MINUTE), 0);
  }
}

/** A name for a number: a digit in a name could be taken for a person's. */
function lettersOf(number: number): string {
  return `${number}`.replaceAll(/\d/g, (digit) => "abcdefghij"[Number(digit)] as string);
}

function copyOf({ contacts, flushes, settled, undone, isDoubtful }: Truth): Truth {
  return {
    contacts: new Map(contacts),
    flushes: new Map(flushes),
    settled: new Map(settled),
    undone: { servers: new Set(undone.servers), since: undone.since },
    isDoubtful,
  };
}
