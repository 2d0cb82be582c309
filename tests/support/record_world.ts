/**
 * Servers, their database and its operator on clocks of the test's. The world knows every call that
 * was let in, and whether the operator's word would be true.
 */

import { assert, assertEquals } from "@std/assert";
import type { Database, Row, Statement } from "../../lib/database/sql/database.ts";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { Ledger } from "../../lib/usage/record/ledger.ts";
import { Recorder } from "../../lib/usage/record/recorder.ts";
import { lagOf } from "../../lib/usage/record/records.ts";
import { reportUsage, type UsageReport } from "../../lib/usage/verdict/report.ts";
import type { Verdict } from "../../lib/usage/verdict/verdict.ts";
import { readSessions } from "../../lib/usage/verdict/waiting.ts";
import { countOne, NOON, PROCESS } from "./counted_call.ts";
import { openLedgerDatabase } from "./ledger_at.ts";

const [MINUTE, HOUR] = [60_000, 3_600_000];
const TABLES = [
  "media_head_usage",
  "media_head_day",
  "media_head_session",
  "media_head_intent",
  "media_head_hold",
  "media_head_ledger",
];
/** Stand in every statement for the time and the timeline at which it is run. */
const [CLOCK, TIMELINE]: readonly [string, string] = [
  "(the clock of the world)",
  "(the timeline of the world)",
];
const POLICY = definePolicy({ deprecatedAt: "2027-01-01" });
export const [AUDIO, VIDEO] = ["/audio/:token", "/video/:token"] as const;

/** A call that a server let in. */
interface Call {
  readonly at: number;
  readonly node: Node;
  readonly route: string;
  readonly client: string;
  /** Tells the call from the client's others. */
  readonly release: string;
}

type State = "runs" | "is suspended" | "sleeps" | "is gone";

/**
 * Whether the database is reached. With "unheard", one more commit is, but not its outcome. With
 * "late", one more commit is, when the world lands it, and not its outcome.
 */
type Link = "up" | "unheard" | "late" | "down";

class Server {
  recorder!: Recorder;
  state: State = "runs";
  lived = 0;
  clock = 0;
  readonly calls: Call[] = [];
  /** The calls in flight. */
  readonly inFlight: Call[] = [];

  constructor(readonly routes: readonly string[], public node: Node, public link: Link) {}
}

interface Node {
  readonly database: Database & AsyncDisposable;
  /** When it became the primary. */
  readonly since: number;
  readonly ledger: Ledger;
  /** Names the database's timeline. */
  timeline: string;
  /** How far the database's clock is ahead. */
  offset: number;
  /** Whether it runs at half speed until it is right. */
  isSlowed: boolean;
  /** Whether it was restored, failed over, or its clock jumped by a minute or more. */
  isDoubtful: boolean;
}

export class World {
  #now = NOON + 12 * HOUR - 30_000; // before midnight
  /** The primary. */
  #node!: Node;
  /** What a backup has, or a replica that falls behind. */
  #copy: readonly (readonly Row[])[] = [];
  #timelines = 0;
  readonly #nodes: Node[] = [];
  readonly #slots = new Map<number, Server>();
  readonly #servers: Server[] = [];
  readonly #jumps: { readonly at: number; readonly by: number }[] = [];
  /** Commits on their way. */
  readonly #late: (() => Promise<unknown>)[] = [];
  /** The server that answers while it flushes: a call between any two statements. */
  #busy = -1;
  /** Settles once it has answered. */
  #answering: Promise<unknown> = Promise.resolve();
  #calls = 0;

  static async open(): Promise<World> {
    const world = new World();
    world.#node = await world.#newNode(0);
    await world.copy();
    return world;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { database } of this.#nodes) await database[Symbol.asyncDispose]();
  }

  /** Starts a server, unless it runs. One that cannot register serves nothing. */
  async start(
    slot: number,
    routes: readonly string[] = [AUDIO, VIDEO],
    link: Link = "up",
  ): Promise<void> {
    if (this.#slots.has(slot)) return;
    const server = new Server(routes, this.#node, link);
    server.recorder = new Recorder({
      ledger: new Ledger(this.#reachedBy(server, slot)),
      policies: Object.fromEntries(routes.map((route) => [route, POLICY])),
      process: { ...PROCESS, pid: this.#servers.length },
      retainDays: 3,
      clock: () => this.#now + server.clock,
      lifetime: () => server.lived,
      log() {},
    });
    try {
      await server.recorder.start();
      this.#slots.set(slot, server);
      this.#servers.push(server);
    } catch (error) {
      assert(error instanceof StorageError && link !== "up");
    }
  }

  /** Has a server answer a call if it may: by a client that has not called before, or by one of a few. */
  async call(slot: number, route: string = AUDIO, isNew = true): Promise<void> {
    const call = await this.#admit(slot, route, isNew);
    if (call !== undefined) this.#count(slot, call);
  }

  /** Has a server let a call in that it answers later. */
  async begin(slot: number, route: string = AUDIO): Promise<void> {
    const call = await this.#admit(slot, route, true);
    if (call !== undefined) this.#slots.get(slot)?.inFlight.push(call);
  }

  /** Has a server answer the calls in flight. */
  finish(slot: number): void {
    for (const call of this.#running(slot)?.inFlight.splice(0) ?? []) this.#count(slot, call);
  }

  /** Lets time pass. Every server that runs flushes at its end, from five seconds on. */
  async pass(time: number): Promise<void> {
    this.#advance(time);
    for (const slot of time < 5_000 ? [] : [...this.#slots.keys()]) {
      await this.#running(slot)?.recorder.flush();
    }
    await this.#answering;
  }

  /** Stops a server: cleanly, if it reaches the database. */
  async stop(slot: number): Promise<void> {
    const server = this.#running(slot);
    if (server === undefined) return;
    if (this.#busy === slot) this.#busy = -1;
    this.finish(slot);
    if (server.link === "up") await server.recorder.stop();
    this.crash(slot);
  }

  /** Kills a server. */
  crash(slot: number): void {
    const server = this.#slots.get(slot);
    if (server !== undefined) server.state = "is gone";
    this.#slots.delete(slot);
  }

  /** Suspends a server, wakes it, cuts it off, connects it, or sets its clock. */
  set(slot: number, change: { state?: State; link?: Link; clock?: number }): void {
    const server = this.#slots.get(slot);
    if (server === undefined) return;
    Object.assign(server, change);
    if (change.link === "up") server.node = this.#node;
  }

  /** Commits what is on its way. */
  async land(): Promise<void> {
    for (const commit of this.#late.splice(0)) await commit().catch(() => {});
  }

  answerWhileFlushing(slot: number): void {
    this.#busy = slot;
  }

  /** Sets the database's clock on, or back. */
  jump(by: number): void {
    this.#node.offset += by;
    this.#jumps.push({ at: this.#now, by });
    if (Math.abs(by) >= MINUTE) this.#node.isDoubtful = true;
  }

  /** Sets the database's clock right if it is ahead: at once, or gradually. */
  setBack(isGradual: boolean): void {
    const { offset } = this.#node;
    if (offset <= 0) return;
    if (!isGradual) return this.jump(-offset);
    this.#node.isSlowed = true;
    if (offset >= MINUTE) this.#node.isDoubtful = true;
  }

  /** Copies the database: a backup, or a replica that falls behind from now on. */
  async copy(): Promise<void> {
    const tables: (readonly Row[])[] = [];
    for (const name of TABLES) {
      tables.push(await this.#node.database.query({ text: `SELECT * FROM ${name}` }));
    }
    this.#copy = tables;
  }

  /**
   * Puts the copy in place of the database's data.
   *
   * @param isTold Whether the database has another timeline then, as PostgreSQL does.
   */
  async restore(isTold = true): Promise<void> {
    // No record can tell a copy without sessions from a new record.
    if (this.#copy[2]?.length === 0) return;
    const node = this.#node;
    for (const [index, name] of TABLES.entries()) {
      const statements = this.#copy[index]?.map((row) => {
        const columns = Object.keys(row);
        const text = `INSERT INTO ${name} (${columns.join()}) VALUES (${
          columns.map((_, at) => `$${at + 1}`).join()
        })`;
        return { text, values: Object.values(row) };
      });
      await node.database.transact([{ text: `DELETE FROM ${name}` }, ...statements ?? []]);
    }
    if (isTold) node.timeline = `${++this.#timelines}`;
    node.isDoubtful = true;
  }

  /** Makes the copy the primary. Connected servers follow it, except those that stay on the old one. */
  async failover(staying: readonly number[] = []): Promise<void> {
    if (this.#copy[2]?.length === 0) return;
    this.#node = await this.#newNode(this.#node.offset);
    await this.restore();
    for (const [slot, server] of this.#slots) {
      if (staying.includes(slot)) continue;
      if (server.link === "up") server.node = this.#node;
    }
  }

  async restart(): Promise<void> {
    await this.#node.ledger.restart();
    this.#node.isDoubtful = false;
  }

  /**
   * Asks whether the routes can be removed, by default whatever calls are on record, with the
   * operator's word where it is true.
   *
   * @throws {AssertionError} If a call is missing since when the record is said to be complete.
   */
  async gate(
    days: number,
    routes?: readonly string[],
    { waits = 2, atMost = Infinity, mayTrust = true } = {},
  ): Promise<Verdict["state"] | "refused"> {
    const [{ ledger }, at] = [this.#node, this.#now];
    const { now } = await ledger.time();
    for (let wait = 0; wait < waits; wait++) await this.pass(5_000);
    const evidence = { ...await readSessions(ledger), timeline: await ledger.timeline() };
    const ask = async (trustStops: boolean): Promise<UsageReport | undefined> => {
      const question = { routes, days, now, ...evidence, isGate: true, trustStops, atMost };
      return await reportUsage(ledger, question)
        .catch((error) => {
          if (error instanceof RefusedError) return undefined; // a route that nobody counted yet
          throw error;
        });
    };
    let report = await ask(false);
    if (report === undefined) return "refused";
    this.#verify(report, at);
    if (mayTrust && this.#isTrue(report, at)) report = await ask(true) as UsageReport;
    this.#verify(report, at);
    return report.verdict.state;
  }

  /** Returns whether the operator can truly vouch for the stops, and for the silent servers. */
  #isTrue({ judged, clients, verdict, from, now }: UsageReport, at: number): boolean {
    if (this.#node.isDoubtful || verdict.state !== "unknown") return false;
    if (verdict.doubts.every(({ reason }) => reason !== "intent")) return true;
    const recorded = new Set(
      clients.flatMap(({ releases }) => releases.map((each) => each.release)),
    );
    return this.#servers.every(({ calls }) =>
      calls.every((call) =>
        recorded.has(call.release) || !judged.includes(call.route) ||
        at - call.at > now - Date.parse(from) + HOUR
      )
    );
  }

  #verify(
    { verdict, completeSince = Infinity, judged, clients, from, atMost, now }: UsageReport,
    at: number,
  ) {
    const start = Math.max(Date.parse(from), completeSince);
    const isClear = judged.length > 0 && completeSince <= Date.parse(from);
    if (atMost === Infinity) assertEquals(verdict.state === "clear", isClear);
    const releases = clients.flatMap((each) => each.releases);
    // On record are the calls of any period for which the record is complete.
    const recorded = new Set(
      releases.filter(({ last }) => last >= start).map(({ release }) => release),
    );
    assert(releases.every(({ calls }) => calls === 1), "a call is on record twice");
    for (const { calls } of this.#servers) {
      for (const call of calls) {
        if (call.at > at || recorded.has(call.release)) continue;
        if (!judged.includes(call.route) || this.#isElsewhere(call)) continue;
        const age = at - call.at + this.#unseenSince(call.at);
        assert(now - age <= start, `call ${call.release} is missing, of ${age / 1000} seconds ago`);
      }
    }
  }

  /** Returns whether the record cannot know of a call: its server was on another database. */
  #isElsewhere({ at, node }: Call): boolean {
    return node !== this.#node && at >= this.#node.since;
  }

  /** Ends all faults. For three days one server runs. Nobody says anything. */
  async calmDown(): Promise<void> {
    for (const slot of [...this.#slots.keys()]) this.set(slot, { state: "runs", link: "up" });
    await this.land();
    this.#busy = -1;
    this.#node.isSlowed = false;
    await this.start(3);
    await this.pass(5_000);
    for (const slot of [0, 1, 2]) await this.stop(slot);
    await this.pass(2 * MINUTE);
    const { ledger } = this.#node;
    const time = await ledger.time();
    const isAhead = ({ began, reported }: { began: number; reported: number }) =>
      Math.max(began, reported) > this.#now + this.#node.offset + MINUTE;
    const isLate = (await ledger.sessions()).some(isAhead);
    const { intents } = await readSessions(ledger);
    const isHeld = intents.some(({ until }) => until > time.databaseTime + 24 * HOUR);
    const isFuture = (await ledger.started() ?? 0) > time.databaseTime + 24 * HOUR;
    if (lagOf(time) >= MINUTE || isLate || isHeld || isFuture) await this.restart();
    await this.gate(4);
    await this.pass(5 * MINUTE);
    await this.pass(71 * HOUR);
    await this.pass(HOUR);
    this.#node.isDoubtful = false; // nothing happened since
  }

  async #newNode(offset: number): Promise<Node> {
    const database = await openLedgerDatabase();
    const ledger = new Ledger(this.#datedBy(() => node, (use) => use(database)));
    const timeline = `${this.#timelines}`;
    const node: Node = {
      database,
      ledger,
      since: this.#now,
      timeline,
      offset,
      isSlowed: false,
      isDoubtful: false,
    };
    this.#nodes.push(node);
    return node;
  }

  /** A database whose statements have the time and the timeline of a node when they are run. */
  #datedBy(
    node: () => Node,
    use: <T>(action: (database: Database) => Promise<T>, isCommit: boolean) => Promise<T>,
  ): Database {
    const dated = (statement: Statement): Statement => {
      const text = statement.text.replaceAll(CLOCK, `${this.#now + node().offset}`)
        .replaceAll(TIMELINE, `'${node().timeline}'`);
      return { ...statement, text };
    };
    const { unlessLocked, batch } = this.#node?.database ?? { unlessLocked: "", batch: 20 };
    return {
      currentTime: CLOCK,
      timeline: TIMELINE,
      unlessLocked,
      batch,
      listOf: (columns) => node().database.listOf(columns),
      rowsOf: (...args) => node().database.rowsOf(...args),
      query: (statement) => use((database) => database.query(dated(statement)), false),
      queryAfterChanges: (statement) => use((database) => database.query(dated(statement)), false),
      write: (statement) => use((database) => database.write(dated(statement)), true),
      transact: (statements, options) =>
        use((database) => database.transact(statements.map(dated), options), true),
    };
  }

  #running(slot: number): Server | undefined {
    const server = this.#slots.get(slot);
    return server?.state === "runs" ? server : undefined;
  }

  /** Lets a call in, if the server may answer it. */
  async #admit(slot: number, route: string, isNew: boolean): Promise<Call | undefined> {
    const server = this.#running(slot);
    if (server === undefined || !server.routes.includes(route)) return undefined;
    const number = this.#calls++;
    // The releases of one client that are recorded in a day are few, too.
    const name = isNew ? `New-${lettersOf(number)}` : `Old-${lettersOf(Math.floor(number / 10))}`;
    const at = this.#now;
    const { intents } = server.recorder;
    intents.arrive(route);
    if (!intents.isHeld(route) && !await intents.hold(route)) {
      intents.leave(route);
      return undefined;
    }
    const call = { at, node: server.node, route, client: `app ${name}`, release: `${number}` };
    server.calls.push(call);
    return call;
  }

  #count(slot: number, { route, client, release }: Call): void {
    const recorder = this.#slots.get(slot)?.recorder;
    if (recorder === undefined) return;
    countOne(recorder.meter, { userAgent: `${client.slice(4)}/${release}`, route });
    recorder.intents.leave(route);
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
        this.#busy = -1; // its own statements are not answered in between
        this.#advance(1_000);
        this.#answering = Promise.all([this.#answering, this.call(slot, AUDIO, false)]);
        this.#busy = slot;
      }
      const { node: { database } } = server;
      if (!isCommit || server.link === "up") return await action(database);
      if (server.link === "late") this.#late.push(() => action(database));
      else await action(database);
      server.link = "down";
      throw new StorageError("sqlite", "the outcome is unknown");
    };
    return this.#datedBy(() => server.node, use);
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
