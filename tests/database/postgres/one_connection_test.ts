/** The one connection of a process that nobody waits for. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { postgresAt } from "../../../lib/database/place.ts";
import type { Client } from "../../../lib/database/postgres/driver.ts";
import { OneConnection } from "../../../lib/database/postgres/one_connection.ts";
import { DENO_RUNTIME } from "../../../lib/database/sqlite/deno_runtime.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import {
  type OpenLedger,
  openLedger,
  openLedgerToChange,
} from "../../../lib/usage/record/open_ledger.ts";
import { Recorder } from "../../../lib/usage/record/recorder.ts";
import type { Part, Session } from "../../../lib/usage/record/records.ts";
import { COUNT, countOne, PROCESS } from "../../support/counted_call.ts";
import { fakeTimers } from "../../support/fake_timers.ts";
import { begin, HEARTBEAT } from "../../support/ledger_rows.ts";
import { needing, shared } from "../../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../../support/postgres.ts";
import { Relay } from "../../support/relay.ts";
import { until, within } from "../../support/within.ts";

const MINUTE = 60_000;

/** Connections to no server. Each one has the number of those made before it. */
function fakeConnections(server: string) {
  const destroyed: number[] = [];
  const state = { made: 0, destroyed, connects: true, breaks: () => {} };
  const create = () => {
    const number = state.made++;
    const stream = { destroy: () => destroyed.push(number), unref() {} };
    return {
      number,
      connection: { stream },
      on: (_: "error", breaks: () => void) => state.breaks = breaks,
      connect: (done: (error: Error | null) => void) => state.connects && done(null),
      end: () => Promise.resolve(),
    } as unknown as Client;
  };
  const open = () => new OneConnection(server, create, (cause) => new Error("down", { cause }));
  const one = open();
  const use = () => one.use((client) => Promise.resolve(Object(client).number));
  return { state, open, one, use };
}

Deno.test("OneConnection.use() replaces a connection after a minute, and not again for ten", async () => {
  for (const isConnecting of [false, true]) {
    using timers = fakeTimers();
    const { state, open } = fakeConnections(`${isConnecting}`);
    const never = new Promise<never>(() => {});
    const ends: (readonly [at: number, reason: string])[] = [];
    const hang = () => {
      state.connects = !isConnecting;
      // The next object is one of a ledger that is opened anew.
      open().use(() => never).catch(({ message }) => ends.push([timers.now(), message]));
    };
    hang();
    await timers.pass(MINUTE - 1);
    assertEquals([ends, state.made], [[], 1]);
    await timers.pass(1);
    assertEquals(state.destroyed, [0]);
    hang();
    await timers.pass(10 * MINUTE - 1);
    assertEquals([ends.length, state.made], [1, 2]);
    await timers.pass(1);
    hang();
    await timers.pass(20 * MINUTE);
    hang();
    await timers.pass(MINUTE);
    assertEquals(ends, [
      [MINUTE, "no answer within 60 s"],
      [11 * MINUTE, "no answer within 600 s"],
      [21 * MINUTE, "no answer within 600 s"],
      [32 * MINUTE, "no answer within 60 s"],
    ]);
    assertEquals(state.destroyed, [0, 1, 2, 3]);
  }
});

Deno.test("OneConnection.use() connects again after a fault, and after a break while it is idle", async () => {
  using _timers = fakeTimers();
  const { state, one, use } = fakeConnections("a");
  assertEquals([await use(), await use()], [0, 0]);
  await assertRejects(() => one.use(() => Promise.reject(new Error("refused"))), Error, "refused");
  assertEquals([await use(), state.destroyed], [1, [0]]);
  state.breaks();
  assertEquals([await use(), state.destroyed], [2, [0, 1]]);
  await one.close();
  assertEquals([await use(), state.destroyed], [3, [0, 1]]);
});

const server = shared(POSTGRES, () => PostgresServer.start());
const test = needing(...POSTGRES);

const OPTIONS = { runtime: () => DENO_RUNTIME };
const CALLS = { ...COUNT, client: "curl", calls: 3 };

/** A ledger of a process, reached through a relay. */
interface Subject extends AsyncDisposable, OpenLedger {
  readonly database: string;
  readonly url: string;
  readonly relay: Relay;
  /** Returns the ids of the backends that somebody's connections have. */
  readonly backends: (condition?: string) => Promise<string[]>;
  readonly calls: () => Promise<number[]>;
}

async function open(): Promise<Subject> {
  const database = await server().createDatabase();
  const relay = new Relay(server().port);
  const url = server().urlOf(database, relay.port);
  const opened = await openLedger(postgresAt(url), OPTIONS);
  return {
    ...opened,
    database,
    url,
    relay,
    backends: (condition = "true") =>
      server().query(
        `SELECT pid FROM pg_stat_activity WHERE datname = '${database}' AND ${condition}`,
      ),
    calls: () => Array.fromAsync(opened.ledger.usage(""), ({ calls }) => calls),
    async [Symbol.asyncDispose]() {
      await opened.close();
      await relay[Symbol.asyncDispose]();
    },
  };
}

const IS_WAITING = "wait_event_type = 'Lock'";

test("a process waits for a write that hangs, and opens no other connection meanwhile", async () => {
  const database = await server().createDatabase();
  const recorder = new Recorder({
    open: () => openLedger(postgresAt(server().urlOf(database)), OPTIONS),
    policies: { [COUNT.route]: definePolicy({ deprecatedAt: "2027-01-01" }) },
    ...{ process: PROCESS, onDemand: false, retainDays: 30 },
    clock: Date.now,
    log() {},
  });
  await recorder.start();
  const release = await server().keep(database, "LOCK TABLE media_head_usage");
  const backends = (condition: string) =>
    server().query(
      `SELECT pid FROM pg_stat_activity WHERE datname = '${database}' AND usename = 'media' AND ${condition}`,
    );
  countOne(recorder.meter, { userAgent: "curl" });
  void recorder.flush();
  await until("the write", async () => (await backends(IS_WAITING)).length === 1);
  const [backend] = await backends(IS_WAITING);
  for (let round = 0; round < 10; round++) {
    countOne(recorder.meter, { userAgent: "curl" });
    void recorder.flush();
    assertEquals(await backends("true"), [backend]);
  }
  await release();
  await recorder.close();
  const calls = await server().query("SELECT calls FROM media_head_usage", database);
  const sessions = await server().query("SELECT ended FROM media_head_session", database);
  assertEquals([calls, sessions], [["11"], ["stopped"]]);
});

const DEFERRED =
  "CONSTRAINT TRIGGER hold AFTER INSERT ON media_head_usage DEFERRABLE INITIALLY DEFERRED";

/** The statement in which a connection breaks, and whether the server aborts the transaction. */
const BREAKS: [what: string, trigger: string, query: string, isAborted: boolean][] = [
  ["a statement", "TRIGGER hold BEFORE INSERT ON media_head_usage", "INSERT", true],
  ["its COMMIT", DEFERRED, "COMMIT", false],
  ["a COMMIT that fails", DEFERRED, "COMMIT", true],
];

for (const [what, trigger, query, isAborted] of BREAKS) {
  test(`a part is recorded once, sent again after its connection broke in ${what}`, async () => {
    await using subject = await open();
    const { ledger, relay, database, backends, calls } = subject;
    const session = await begin(ledger);
    const release = await server().hold(database, trigger);
    const part = { ...HEARTBEAT, counts: [CALLS] };
    const writing = assertRejects(() => ledger.write(part, session, undefined), StorageError);
    const isAtIt = `query ~ '^${query}' AND ${IS_WAITING}`;
    await until(query, async () => (await backends(isAtIt)).length === 1);
    const before = await backends(isAtIt);
    relay.lead(server().port);
    await writing;
    if (isAborted) await server().query(`SELECT pg_terminate_backend(${before})`);
    await release();
    const isWritten = await ledger.write(part, session, undefined) !== undefined;
    assertEquals(isWritten, isAborted);
    assertEquals([await calls(), (await ledger.session(session.id))?.sequence], [[3], 2]);
    const now = await backends("usename = 'media'");
    assertEquals([now.length, now[0] === before[0]], [1, false]);
  });
}

test("close() ends at once beside a statement that hangs, and a server that is frozen", async () => {
  for (const isFrozen of [false, true]) {
    await using subject = await open();
    const { ledger, database, backends } = subject;
    const session = await begin(ledger);
    const release = await server().keep(database, "LOCK TABLE media_head_session");
    const writing = assertRejects(() => ledger.write(HEARTBEAT, session, undefined), StorageError);
    await until("the write", async () => (await backends(IS_WAITING)).length === 1);
    if (isFrozen) server().freeze();
    await within("close()", Promise.all([subject.close(), writing]), { timeout: 9_000 });
    if (isFrozen) server().thaw();
    await release();
  }
});

test("a heartbeat is three round trips: the time, the check of the sequence, and the rest", async () => {
  await using subject = await open();
  const { ledger, relay } = subject;
  const session = await begin(ledger);
  let [trips, hasSent] = [0, false];
  relay.onSent = () => void (hasSent = true);
  relay.onReceived = async () => {
    await new Promise((resolve) => setTimeout(resolve, 50)); // until the client waits for it
    if (hasSent) trips++;
    hasSent = false;
  };
  const counts = Array.from({ length: 100 }, (_, index) => ({ ...CALLS, client: `${index}` }));
  for (const [sequence, part] of [{ counts }, { counts: [] }].entries()) {
    trips = 0;
    const { now: before } = await ledger.time();
    assertEquals(trips, 1);
    const known = { ...session, sequence: sequence + 1 };
    assert(await ledger.write({ ...HEARTBEAT, ...part, before }, known, undefined));
    assertEquals(trips, 3);
  }
});

test("a process's writes wait for no standby, and a hold waits as the server is set", async () => {
  await using primary = await PostgresServer.start();
  const database = await primary.createDatabase();
  const place = postgresAt(primary.urlOf(database));
  const { ledger, close } = await openLedger(place, OPTIONS);
  const command = await openLedgerToChange(place, OPTIONS);
  await primary.query("ALTER SYSTEM SET synchronous_standby_names = 'away'");
  await primary.query("SELECT pg_reload_conf()");
  const isSet =
    "SELECT 1 FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = 'away'";
  await until("the setting", async () => (await primary.query(isSet)).length === 1);
  const session = await within("a beginning", begin(ledger));
  const part: Part = { ...HEARTBEAT, counts: [CALLS] };
  assert(await within("a write", ledger.write(part, session, undefined)));
  assertEquals(await within("retention", ledger.forget("2020-01-01", Date.now())), "refused");
  let isHeld = false;
  const until_ = Date.now() + MINUTE;
  const holding = command.ledger.hold({ route: undefined, until: until_, because: "b" });
  holding.then(() => isHeld = true);
  const isWaiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
  await until("the hold", async () => (await primary.query(isWaiting)).length === 1);
  assertEquals(isHeld, false);
  await primary.query("ALTER SYSTEM RESET synchronous_standby_names");
  await primary.query("SELECT pg_reload_conf()");
  await holding;
  assertEquals((await ledger.holds()).holds.length, 1);
  assertEquals((await ledger.session(session.id) as Session).sequence, 2);
  await Promise.all([close(), command.close()]);
});
