/** The suite of copying a record from one engine to another, or the same. */

import { assert, assertEquals, assertMatch, assertRejects } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { Database, Statement } from "../../../lib/database/sql/database.ts";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { copyRecord } from "../../../lib/usage/moving/copy_record.ts";
import { OldRecord } from "../../../lib/usage/moving/old_record.ts";
import { Ledger } from "../../../lib/usage/record/ledger.ts";
import { MAX_PART_ROWS, type Session } from "../../../lib/usage/record/records.ts";
import { Recorder } from "../../../lib/usage/record/recorder.ts";
import { COUNT, countOne, DAY, NOON, PROCESS } from "../../support/counted_call.ts";
import { databaseAt } from "../../support/ledger_at.ts";
import { begin, FOREVER } from "../../support/ledger_rows.ts";
import type { Test } from "../../support/permissions.ts";

const MINUTE = 60_000;
const POLICY = definePolicy({ deprecatedAt: "2027-01-01" });
const POLICIES = { "/audio/:token": POLICY };

type OpenDatabase = () => Promise<Database & AsyncDisposable>;

/** A record on clocks of the test. */
interface Side {
  readonly database: Database;
  readonly ledger: Ledger;
  /** Begins a session. */
  begin(id: string, routes?: readonly string[]): Promise<Session>;
  /** Flushes counts, and stops if it is told to. */
  flush(
    session: Session,
    calls: readonly [client: string, calls: number][],
    isStopped?: boolean,
  ): Promise<Session>;
}

/** Runs the suite; every test opens empty databases of its own. */
export function testCopy(
  name: string,
  { openOld, openNew }: { readonly openOld: OpenDatabase; readonly openNew: OpenDatabase },
  register: Test = Deno.test,
): void {
  const test = (
    what: string,
    body: (sides: { old: Side; own: Side; record: OldRecord; clock: Clock }) => Promise<void>,
  ) =>
    register(`copyRecord() from ${name} ${what}`, async () => {
      await using oldDatabase = await openOld();
      await using ownDatabase = await openNew();
      const clock: Clock = { now: NOON, statements: [] };
      const [old, own] = [sideOf(oldDatabase, clock), sideOf(ownDatabase, clock)];
      await body({ old, own, clock, record: new OldRecord("OLD", old.database, 10) });
    });

  /** A record of two days with one server, and another one with another server. */
  async function fill({ old, own, clock }: { old: Side; own: Side; clock: Clock }) {
    const first = await old.begin("old");
    clock.now += 2 * DAY;
    await own.begin("own");
    await old.flush(first, [["app A", 2], ["app B", 1]], true);
  }

  test("adds each row, day, session, intent and hold once", async (sides) => {
    const { old, own, record, clock } = sides;
    const many = Array.from({ length: 250 }, (_, at): [string, number] => [`app Many${at}`, 1]);
    let session = await old.begin("old");
    const extensions = { "/audio/:token": { acme: NOON + 99 * DAY } };
    const mounts = { policies: POLICIES, unmounted: { "/v1": POLICY }, extensions };
    assert(await old.ledger.mount(session, mounts));
    for (let at = 0; at < many.length; at += 50) {
      session = await old.flush(session, many.slice(at, at + 50));
    }
    const hold = await old.ledger.hold({
      route: undefined,
      until: clock.now + DAY,
      because: "it hurts",
    });
    assert(await old.ledger.intend({ id: "intent", route: "/audio/:token" }, session));
    clock.now += DAY;
    const second = await old.begin("second");
    await old.flush(second, [["app A", 2]], true);
    const server = await own.begin("own");
    await own.flush(server, [["app A", 5], ["app Many7", 4]]);
    const [before, started] = [await old.ledger.session("old"), await old.ledger.started()];
    clock.statements.length = 0;

    const result = await copyRecord(record, own.ledger, { into: "NEW" });
    assertEquals([result.isRepeated, result.sessions, result.started], [false, 2, started]);
    const rows = await Array.fromAsync(own.ledger.usage(""));
    const sums = Object.entries(Object.groupBy(rows, ({ client }) => client))
      .map(([client, rows = []]) => [client, rows.reduce((sum, { calls }) => sum + calls, 0)]);
    assertEquals(
      new Map(sums as [string, number][]),
      new Map([...many, ["app A", 7], ["app Many7", 5]]),
    );
    const days = (await own.ledger.histories()).find(({ client }) => client === "app Many7");
    assertEquals([days?.days, days?.calls, days?.pause], [2, 5, 1]);
    assertEquals((await own.ledger.holds()).holds, [hold]);
    const sessions = await own.ledger.sessions();
    assertEquals(sessions.map(({ id, ended }) => [id, ended]), [
      ["old", "lapsed"],
      ["own", undefined],
      ["second", "stopped"],
    ]);
    assertEquals(sessions[0], { ...before as Session, timeline: "", ended: "lapsed" });
    const intents = await own.ledger.intents();
    const [intent] = intents.filter(({ id }) => id === "intent");
    assertEquals([intent?.session, intent?.settled], ["old", NOON]);
    const longest = Math.max(...clock.statements.map((statements) => statements.length));
    assert(longest <= MAX_PART_ROWS + 1, `${longest} statements`);
    const rowsAt = clock.statements.flat().map(({ values = [] }) => values.flat().length);
    assert(Math.max(...rowsAt) <= MAX_PART_ROWS * 11, "a statement with more rows than a part");

    assertEquals((await copyRecord(record, own.ledger, { into: "NEW" })).isRepeated, true);
    assertEquals(await Array.fromAsync(own.ledger.usage("")), rows);
    assertEquals((await own.ledger.histories()).length, 251);
  });

  test("is done once by two commands at once", async (sides) => {
    await fill(sides);
    const { own, record } = sides;
    const copies = await Promise.allSettled(
      [1, 2, 3].map(() => copyRecord(record, own.ledger, { into: "NEW" })),
    );
    assert(copies.every(({ status }) => status === "fulfilled"), JSON.stringify(copies));
    const rows = await Array.fromAsync(own.ledger.usage(""));
    assertEquals(rows.map(({ client, calls }) => [client, calls]), [["app A", 2], ["app B", 1]]);
    assertEquals((await own.ledger.sessions()).map(({ id }) => id), ["old", "own"]);
  });

  test("refuses a second copy, into another record, and names the first one", async (sides) => {
    await fill(sides);
    const { old, own, record } = sides;
    await copyRecord(record, own.ledger, { into: "postgres://db/media" });
    await using third = await openNew();
    const error = await assertRejects(
      () => copyRecord(record, new Ledger(third), { into: "NEW" }),
      RefusedError,
    );
    assertEquals(
      error.message,
      'OLD was copied into "postgres://db/media" at 2027-02-03T12:00:00Z; ' +
        "expected a record that was not copied into another one",
    );
    assertEquals(await new Ledger(third).sessions(), []);
    const back = new OldRecord("NEW", own.database, 10);
    const shared =
      /NEW is the record in use itself, or one is a copy of the other: both have session/;
    assertMatch((await refusal(back, own.ledger)).message, shared);
    assertEquals((await back.read()).closing, undefined, "it was not closed");
    const { closing } = await record.read();
    const marker = await old.ledger.session(closing?.id ?? "") as Session;
    const { policies, ended, process, retainDays } = marker;
    assertEquals([policies, ended, process.machine], [{}, "stopped", "postgres://db/media"]);
    assertEquals(retainDays, 400, "what the report on it says");
    assertEquals(await old.ledger.session("old"), undefined, "it is closed");
  });

  test("refuses records that do not belong together, and closes neither", async (sides) => {
    const { old, own, record, clock } = sides;
    assertMatch((await refusal(record, own.ledger)).message, /^OLD has no sessions, so there is/);
    const session = await old.begin("old", ["/v1", "/v2"]);
    clock.now += DAY;
    const server = await own.begin("own", ["/v3"]);
    assertEquals(
      (await refusal(record, own.ledger)).message,
      'OLD shares no route with the record in use: it has "/v1", "/v2", and the record in use has ' +
        '"/v3"',
    );
    await old.flush(session, []);
    clock.now += MINUTE - 1;
    assertMatch(
      (await refusal(record, own.ledger)).message,
      /^session old \(process 4711 on web-1, .*\) sent a heartbeat to OLD at 2027-02-02T12:00:00Z, less than a/,
    );
    assertEquals((await old.ledger.sessions()).map(({ id }) => id), ["old"]);
    clock.now += 1;
    await own.flush(server, []);
    await own.begin("with both", ["/v2", "/v3"]);
    const { sessions } = await copyRecord(record, own.ledger, { into: "NEW" });
    assertEquals(sessions, 1);
    const routes = (await own.ledger.sessions()).flatMap(({ policies }) => Object.keys(policies));
    assertEquals(routes, ["/v1", "/v2", "/v3", "/v2", "/v3"], "a route that only OLD has");
  });

  test("makes a process that comes back register as in a restored record", async (sides) => {
    const { old, own, record, clock } = sides;
    const { recorder, events } = await fallSilent(old, clock);
    await copyRecord(record, own.ledger, { into: "NEW" });
    countOne(recorder.meter, { userAgent: "Late/1" });
    await recorder.flush();
    assertMatch(events.join("\n"), /^warning /);
    assertEquals(await old.ledger.started(), clock.now + DAY);
    assertEquals(await Array.fromAsync(own.ledger.usage("")), []);
    await recorder.stop();
    assertEquals((await copyRecord(record, own.ledger, { into: "NEW" })).isRepeated, true);
  });

  /** Kills the copy of a record before its rows. */
  async function interrupt(record: OldRecord, { ledger }: Side) {
    const { copies } = ledger;
    const add = copies.add.bind(copies);
    using _ = stub(copies, "add", (copy, part, to) => {
      return part.rows === undefined ? add(copy, part, to) : Promise.reject(new Error("killed"));
    });
    await assertRejects(() => copyRecord(record, ledger, { into: "NEW" }), Error, "killed");
  }

  test("refuses another one until one that was interrupted is complete", async (sides) => {
    const { old, own, record, clock } = sides;
    await using database = await openOld();
    const between = sideOf(database, clock);
    const first = await old.begin("old");
    clock.now += 2 * DAY;
    const second = await between.begin("between");
    await old.flush(first, [], true);
    clock.now += 2 * DAY;
    await own.begin("own");
    await between.flush(second, [["app A", 1]], true);
    const latest = new OldRecord("BETWEEN", between.database, 10);
    await interrupt(latest, own);
    assertMatch(
      (await refusal(record, own.ledger)).message,
      /^another record is being copied into/,
    );
    assertEquals((await record.read()).closing, undefined, "it was not closed");
    await copyRecord(latest, own.ledger, { into: "NEW" });
    const { started } = await copyRecord(record, own.ledger, { into: "NEW" });
    assertEquals(started, NOON);
    const rows = await Array.fromAsync(own.ledger.usage(""));
    assertEquals(rows.map(({ client, calls }) => [client, calls]), [["app A", 1]]);
  });

  test("refuses a record whose backup was copied since its own copy was interrupted", async (sides) => {
    await fill(sides);
    const { old, own, record } = sides;
    await using database = await openOld();
    const backup = sideOf(database, sides.clock);
    await backup.ledger.begin({ ...await old.ledger.session("old") as Session, sequence: 0 });
    await backup.flush(await backup.ledger.session("old") as Session, [["app A", 2]], true);
    {
      using _ = stub(own.ledger.copies, "claim", () => Promise.reject(new Error("killed")));
      await assertRejects(() => copyRecord(record, own.ledger, { into: "NEW" }), Error, "killed");
    }
    await copyRecord(new OldRecord("BACKUP", backup.database, 10), own.ledger, { into: "NEW" });
    assertMatch(
      (await refusal(record, own.ledger)).message,
      /one is a copy of the other: both have/,
    );
    const rows = await Array.fromAsync(own.ledger.usage(""));
    assertEquals(rows.map(({ client, calls }) => [client, calls]), [["app A", 2]]);
  });

  test("starts the record again if a process comes back meanwhile", async (sides) => {
    const { old, own, record, clock } = sides;
    const { recorder } = await fallSilent(old, clock);
    await own.begin("own");
    const { copies } = own.ledger;
    const add = copies.add.bind(copies);
    using _ = stub(copies, "add", async (...part) => {
      await recorder.flush();
      return await add(...part);
    });
    const { started } = await copyRecord(record, own.ledger, { into: "NEW" });
    assertEquals(started, clock.now + DAY);
    await recorder.stop();
  });

  test("moves the start only while nobody else moves it", async ({ own, clock }) => {
    await own.begin("own");
    const { copies } = own.ledger;
    await copies.begin("copy");
    const copy = { id: "copy", position: "", completed: undefined };
    const moving = { started: NOON - DAY, now: clock.now };
    assertEquals(await copies.complete(copy, { ...moving, found: undefined }), false);
    assertEquals(await copies.complete(copy, { ...moving, found: NOON - 1 }), false);
    assertEquals((await copies.find("copy"))?.completed, undefined);
    assertEquals(await copies.complete(copy, { ...moving, found: NOON }), true);
    assertEquals(await own.ledger.started(), NOON - DAY);
    assertEquals(await copies.complete(copy, { ...moving, found: NOON - DAY }), false);
  });
}

interface Clock {
  now: number;
  /** The transactions that were run. */
  readonly statements: (readonly Statement[])[];
}

/** Registers a process, which is silent for two minutes then. */
async function fallSilent({ ledger }: Side, clock: Clock) {
  const events: string[] = [];
  const recorder = new Recorder({
    ledger,
    policies: POLICIES,
    process: PROCESS,
    retainDays: 400,
    clock: () => clock.now,
    lifetime: () => clock.now,
    log: ({ event, message }) => events.push(`${event} ${message}`),
  });
  await recorder.start();
  await recorder.flush();
  clock.now += 2 * MINUTE;
  return { recorder, events };
}

/** Returns why a copy is refused. */
async function refusal(record: OldRecord, ledger: Ledger): Promise<Error> {
  return await assertRejects(() => copyRecord(record, ledger, { into: "NEW" }), RefusedError);
}

function sideOf(plain: Database, clock: Clock): Side {
  const dated = databaseAt(plain, () => clock.now);
  const database: Database = {
    ...dated,
    transact(statements, options) {
      clock.statements.push(statements);
      return dated.transact(statements, options);
    },
  };
  const ledger = new Ledger(database);
  return {
    database,
    ledger,
    begin: (id, routes = ["/audio/:token"]) =>
      begin(ledger, id, {}, Object.fromEntries(routes.map((route) => [route, POLICY]))),
    async flush(session, calls, isStopped = false) {
      const counts = calls.map(([client, calls]) => ({ ...COUNT, client, calls }));
      const part = { counts, at: clock.now, heartbeat: { intents: undefined, isStopped } };
      assert(await ledger.add(part, session, FOREVER) !== undefined, "it is recorded");
      return { ...session, sequence: session.sequence + 1, reported: clock.now };
    },
  };
}
