/** The suite of every ledger. */

import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import type { Database, Statement } from "../../../lib/database/sql/database.ts";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { callerOf } from "../../../lib/usage/record/client_names.ts";
import { Ledger } from "../../../lib/usage/record/ledger.ts";
import {
  type FlushPart,
  type HeartbeatIntents,
  type Impact,
  LEASE_MS,
  type Session,
  type UsageRow,
} from "../../../lib/usage/record/records.ts";
import { usageCommand } from "../../../lib/usage/usage_command.ts";
import { SOURCE } from "../../support/usage_report.ts";
import { COUNT, DAY, NOON } from "../../support/counted_call.ts";
import { ledgerAt } from "../../support/ledger_at.ts";
import { addRows, begin, FOREVER } from "../../support/ledger_rows.ts";
import type { Test } from "../../support/permissions.ts";
import { NAMED_USER_AGENTS } from "../../support/user_agents.ts";

const MINUTE = 60_000;
const CALLS = { ...COUNT, client: "curl", release: "8", calls: 3 };
const ROW: UsageRow = { ...CALLS, day: "2027-02-01", last: NOON };

/** A heartbeat that says nothing of intents. */
const HEARTBEAT = { intents: undefined, isStopped: false };

/** A ledger, and the clock and the timeline of its database, whose time begins at noon. */
interface Subject {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly clock: { now: number; timeline: string };
  /** How each statement to write begins that was run, and each transaction. */
  readonly run: string[];
  readonly rows: () => Promise<UsageRow[]>;
}

/** Runs the suite on a driver; every test opens an empty database of its own. */
export function testLedger(
  name: string,
  open: () => Promise<Database & AsyncDisposable>,
  register: Test = Deno.test,
): void {
  const test = (what: string, body: (subject: Subject) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using database = await open();
      const clock = { now: NOON, timeline: "A" };
      const run: string[] = [];
      const noted = noting(database, run);
      const ledger = ledgerAt(noted, () => clock.now, () => `'${clock.timeline}'`);
      await body({ database, ledger, clock, run, rows: () => Array.fromAsync(ledger.usage("")) });
    });

  test("add() merges rows with the same key, and keeps others apart", async ({ ledger, rows }) => {
    await addRows(ledger, [ROW]);
    await addRows(ledger, [{ ...ROW, calls: 2, last: NOON - 9 }]);
    assertEquals(await rows(), [{ ...ROW, calls: 5 }]);
    await addRows(ledger, [{ ...ROW, calls: 1, last: NOON + 9 }]);
    const first = { ...ROW, calls: 6, last: NOON + 9 };
    const others: Partial<UsageRow>[] = [
      { day: "2027-02-02", last: NOON + DAY },
      { route: "/video/:token" },
      { method: "GET" },
      { phase: "brownout" },
      { brownout: "2027-02-01T09:00:00Z" },
      { status: "4xx" },
      { impact: "none" },
      { client: "(no User-Agent)" },
      { release: "" },
    ];
    const added = others.map((other): UsageRow => ({ ...ROW, ...other }));
    await addRows(ledger, added);
    assertEquals(new Set(await rows()), new Set([first, ...added]));
  });

  test("add() accepts any number of rows, with every name", async ({ ledger, rows }) => {
    const ids = ["!", "~".repeat(64), "'; DROP TABLE media_head_usage; --"];
    const callers = [
      ...NAMED_USER_AGENTS.map(([, userAgent]) => new Headers({ "User-Agent": userAgent })),
      ...ids.map((id) => new Headers({ "X-Id": id })),
    ].map((fields) => callerOf(fields, fields.get("x-id") ?? undefined).name);
    const many = Array.from({ length: 1_001 }, (_, index) => `${index}`.padStart(64, "c"));
    const names = [...new Set([...callers, ...many])].sort();
    assert(names.includes("app 播客") && names.includes("id !"), "the table has hard names");
    for (const round of [1, 2]) {
      await addRows(ledger, names.map((client) => ({ ...ROW, client })));
      const recorded = await rows();
      assertEquals(recorded.map(({ client }) => client).sort(), names);
      assert(recorded.every(({ calls }) => calls === 3 * round));
    }
    assertEquals([await ledger.hasClient("id !"), await ledger.hasClient("id")], [true, false]);
  });

  test("usage() lists the rows from a day on, ordered by day", async ({ ledger }) => {
    const days = ["2027-02-03", "2026-12-31", "2027-02-01", "2027-02-02"];
    await addRows(ledger, days.map((day) => ({ ...ROW, last: Date.parse(day) })));
    const from = async (day: string) => await Array.fromAsync(ledger.usage(day), ({ day }) => day);
    assertEquals(await from("2027-02-02"), ["2027-02-02", "2027-02-03"]);
    assertEquals(await from(""), days.toSorted());
    assertEquals(await from("2027-02-04"), []);
  });

  test("histories() has the days with calls of each client, and the longest pause", async ({ ledger }) => {
    assertEquals(await ledger.histories(), []);
    const on = (day: string, more: Partial<UsageRow> = {}): UsageRow => {
      return { ...ROW, last: Date.parse(day), ...more };
    };
    await addRows(ledger, [
      on("2026-11-01"),
      on("2026-11-02", { calls: 1 }),
      on("2027-02-01", { calls: 4, release: "" }),
      on("2027-02-01", { calls: 5, release: "9", method: "GET", status: "5xx" }),
      on("2027-02-03", { impact: "none" }),
      on("2027-02-02", { client: "once", calls: 7 }),
      on("2027-02-02", { client: "nobody", impact: "none" }),
      on("2027-02-02", { route: "/video/:token" }),
      on("2027-02-05", { route: "/video/:token" }),
    ]);
    await addRows(ledger, [on("2027-02-01", { calls: 2 })]);
    const found = (await ledger.histories()).toSorted((a, b) =>
      a.route < b.route || a.route === b.route && a.client < b.client ? -1 : 1
    );
    const [of, once] = [{ route: ROW.route, client: "curl" }, "2027-02-02"];
    const [first, last] = ["2026-11-01", "2027-02-01"];
    assertEquals(found, [
      { ...of, calls: 15, days: 3, first, last, lastCalls: 11, pause: 91 },
      { ...of, client: "once", ...one(once, 7) },
      {
        ...of,
        route: "/video/:token",
        ...one(once, 3),
        calls: 6,
        days: 2,
        pause: 3,
        last: "2027-02-05",
      },
    ]);
  });

  test("a client that calls once a quarter is called until it is silent for longer than that", async ({ database, ledger, clock }) => {
    clock.now = Date.parse("2027-01-01");
    const client = "id quarterly-billing";
    const policy = definePolicy({ deprecatedAt: "2026-11-21" });
    let session = await begin(ledger, "a", {}, { [ROW.route]: policy });
    const on = async (at: string, calls = 0) => {
      clock.now = Date.parse(at);
      const counts = calls === 0 ? [] : [{ ...COUNT, client, release: "2.1", calls }];
      assert(await ledger.add({ counts, at: clock.now, heartbeat: HEARTBEAT }, session, FOREVER));
      session = { ...session, sequence: session.sequence + 1, reported: clock.now };
    };
    const gate = async (...days: string[]) => {
      let text = "";
      const print = (line: string) => Promise.resolve(void (text += `${line}\n`));
      const openFile = () => Promise.reject();
      const status = await usageCommand({
        withSource: (_, action) => action({ ...SOURCE, ledger, openFile }),
        print,
        printError() {},
      }).parseAsync(["--gate", ...days], { from: "user" }).catch((error) => error.status);
      return [status, text] as const;
    };
    for (const day of ["2027-04-15", "2027-07-15", "2027-10-15"]) await on(`${day}T09:00:00Z`, 500);

    await on("2027-11-27T12:00:00Z");
    const [fixed, named] = await gate("30");
    assertEquals(fixed, 0, named);
    assertStringIncludes(
      named,
      `\n  ${client}: 1,500 calls on 3 days from 2027-04-15 to 2027-10-15, at most 92 days apart\n` +
        "On record since 2027-01-01: ",
    );
    const [status, text] = await gate();
    assertEquals(status, 1, text);
    assertStringIncludes(
      text,
      `\n  ${client}: 1,500 calls on 3 days, at most 92 days apart, the last on 2027-10-15; `,
    );
    await on("2028-01-15T23:59:59Z");
    assertEquals((await gate())[0], 1);
    await on("2028-01-16T00:00:00Z");
    const [clear, last] = await gate();
    assertEquals(clear, 0, last);
    assertMatch(last, /^Clear: .*, no client is due by its rhythm, .*\n/);
    assertMatch(last, /\nOn record since 2027-01-01: .* 126 days apart /);
    const isUsed = await database.query({ text: "SELECT count(*) AS days FROM media_head_day" });
    assertEquals(isUsed, [{ days: 3 }]);
  });

  test("add() records a part once, and none after the end", async ({ ledger, clock, rows }) => {
    const session = await begin(ledger);
    const part = { counts: [CALLS], at: NOON };
    const add = (part: FlushPart, changes: Partial<Session> = {}) =>
      ledger.add(part, { ...session, ...changes }, FOREVER);
    assertEquals(await add(part, { sequence: 1 }), undefined, "behind");
    assertEquals(await add(part, { id: "b" }), undefined, "missing");
    assertEquals(await add(part), { databaseTime: NOON, now: NOON });
    assertEquals(await add(part), undefined, "sent again");
    clock.now += 9;
    const last = { counts: [], at: NOON, heartbeat: { ...HEARTBEAT, isStopped: true } };
    assertEquals(await add(last), undefined, "without rows, too");
    const extended = { ...session, sequence: 1 };
    assertEquals(await ledger.session(session.id), extended, "another part follows");
    const holds = { holds: [], faults: [] };
    assertEquals(await add(last, { sequence: 1 }), {
      databaseTime: NOON + 9,
      now: NOON + 9,
      holds,
    });
    assertEquals(await add(part, { sequence: 2 }), undefined, "ended");
    assertEquals(await rows(), [ROW]);
    const stopped = { ...session, sequence: 2, reported: NOON + 9, ended: "stopped" } as const;
    assertEquals(await ledger.sessions(), [stopped]);
  });

  test("add() dates a heartbeat with the ledger's time", async ({ ledger, clock }) => {
    const [session, other] = [await begin(ledger, "a"), await begin(ledger, "b")];
    const send = async (of: Session, sequence: number) => {
      const part = { counts: [], at: NOON, heartbeat: HEARTBEAT };
      const time = await ledger.add(part, { ...of, sequence }, FOREVER);
      return [time?.databaseTime, time?.now, (await ledger.session(of.id))?.reported];
    };
    clock.now = NOON + 7;
    assertEquals(await send(session, 0), Array(3).fill(NOON + 7));
    clock.now = NOON + 5;
    assertEquals(
      await send(session, 1),
      [NOON + 5, NOON + 7, NOON + 7],
      "the clock was set back",
    );
    assertEquals(await send(other, 0), [NOON + 5, NOON + 7, NOON + 7], "of any session");
  });

  test("add() returns the time of the heartbeat, though the clock goes on in the statement", async ({ database, clock }) => {
    const ledger = ledgerAt(database, () => clock.now++);
    let session = await begin(ledger);
    for (let sequence = 0; sequence < 3; sequence++) {
      const part = { counts: [], at: 0, heartbeat: HEARTBEAT };
      const time = await ledger.add(part, { ...session, sequence }, FOREVER);
      session = await ledger.session(session.id) as Session;
      assertEquals(time?.now, session.reported);
    }
  });

  test("add() records a heartbeat only of a time that its process lived through", async ({ ledger, clock, rows }) => {
    const session = await begin(ledger);
    clock.now = NOON + 5_000;
    const part = { counts: [CALLS], at: NOON, heartbeat: HEARTBEAT };
    for (const livedUntil of [0, NOON + 4_999.5, NOON + 5_000]) {
      assertEquals(await ledger.add(part, session, livedUntil), undefined, `${livedUntil}`);
    }
    assertEquals([await ledger.session(session.id), await rows()], [session, []]);
    assert(
      await ledger.add({ counts: [CALLS], at: NOON }, session, 0),
      "counts alone are recorded",
    );
    const next = { ...session, sequence: 1 };
    assert(await ledger.add(part, next, NOON + 5_000.25), "a fraction of a millisecond later");
  });

  test("add() records no heartbeat on another timeline, but its counts", async ({ ledger, clock, rows }) => {
    const session = await begin(ledger);
    assertEquals(session.timeline, "A");
    clock.timeline = "B";
    const part = { counts: [CALLS], at: NOON };
    for (const counts of [[CALLS], []]) {
      const last = { counts, at: NOON, heartbeat: HEARTBEAT };
      assertEquals(await ledger.add(last, session, FOREVER), undefined);
    }
    assertEquals([await ledger.session(session.id), await rows()], [session, []]);
    assert(await ledger.add(part, session, FOREVER));
    const lapsed = { ...session, sequence: 1 };
    const next = await begin(ledger, "next", { lapsed });
    assertEquals([next.timeline, (await ledger.session(session.id))?.timeline], ["B", "A"]);
    assert(await ledger.add({ ...part, heartbeat: HEARTBEAT }, next, FOREVER));
  });

  test("add() records no heartbeat that was written before the time was set back", async ({ ledger, clock }) => {
    const session = await begin(ledger);
    const at = clock.now = NOON + 30_000;
    const heartbeat = { intents: { ...NOTHING, at, sequence: 0 }, isStopped: false };
    clock.now = NOON + 10_000; // a gate may ask now, just after another call
    const part = { counts: [], at, heartbeat };
    assertEquals(await ledger.add(part, session, FOREVER), undefined);
    assertEquals(await ledger.session(session.id), session);
    clock.now = at;
    assert(await ledger.add(part, session, FOREVER));
  });

  test("add() of an idle process's heartbeat is one statement", async ({ ledger, run }) => {
    const session = await begin(ledger);
    run.length = 0;
    assert(await ledger.add({ counts: [], at: 0, heartbeat: HEARTBEAT }, session, FOREVER));
    assertEquals(run, ["UPDATE media_head_session"]);
    const stopped = { counts: [], at: 0, heartbeat: { ...HEARTBEAT, isStopped: true } };
    assert(await ledger.add(stopped, { ...session, sequence: 1 }, FOREVER));
    assertEquals(run, [...run.slice(0, 1), "BEGIN, synced", "UPDATE media_head_session"]);
  });

  test("add() records nothing where a restart has set the heartbeat back", async ({ ledger, clock }) => {
    const session = await begin(ledger);
    clock.now -= DAY;
    const part = { counts: [CALLS], at: NOON, heartbeat: HEARTBEAT };
    assert(await ledger.add(part, session, FOREVER));
    await ledger.restart();
    const next = { ...session, sequence: 1 };
    assertEquals(await ledger.add(part, next, FOREVER), undefined);
    assertEquals((await ledger.session(session.id))?.sequence, 1);
  });

  test("add() records nothing of a part with a malformed row", async ({ ledger, rows }) => {
    const session = await begin(ledger);
    const counts = Array.from({ length: 250 }, (_, index) => ({ ...CALLS, client: `${index}` }));
    const part = { counts, at: NOON, heartbeat: HEARTBEAT };
    const malformed = { ...part, counts: [...counts, { ...CALLS, impact: "some" as Impact }] };
    for (const _ of [1, 2, 3]) { // more often than there are connections
      await assertRejects(() => ledger.add(malformed, session, FOREVER), StorageError);
      assertEquals([await rows(), await ledger.session(session.id)], [[], session]);
    }
    assert(await ledger.add(part, session, FOREVER));
    assertEquals((await rows()).length, 250);
  });

  test("time() is the clock, or the latest heartbeat if later", async ({ database, ledger, clock }) => {
    assertEquals(await ledger.time(), { databaseTime: NOON, now: NOON });
    await begin(ledger);
    clock.now -= 5;
    assertEquals(await ledger.time(), { databaseTime: NOON - 5, now: NOON });
    clock.now += 9;
    assertEquals(await ledger.time(), { databaseTime: NOON + 4, now: NOON + 4 });
    const own = (await new Ledger(database).time()).databaseTime; // on this machine
    assert(Math.abs(own - Date.now()) < MINUTE, `${own} is not the time`);
  });

  test("begin() starts the record once, and if the clock is behind", async ({ ledger, clock }) => {
    assertEquals(await ledger.started(), undefined);
    const latest = NOON + 2 * MINUTE;
    const beginnings: [id: string, clock: number, began: number, started: number][] = [
      ["b", NOON, NOON, NOON],
      ["a", latest, latest, NOON],
      ["c", latest - MINUTE + 1, latest, NOON],
      ["d", latest - MINUTE, latest, latest + LEASE_MS],
      ["e", latest - MINUTE, latest, latest + LEASE_MS],
    ];
    for (const [id, now, ...times] of beginnings) {
      clock.now = now;
      assertEquals([(await begin(ledger, id)).began, await ledger.started()], times, id);
    }
    const sessions = (await ledger.sessions()).map(({ id, ended }) => [id, ended]);
    assertEquals(sessions, ["b", "a", "c", "d", "e"].map((id) => [id, undefined]), "all stay open");
  });

  test("begin() lapses a session only if it is as it was left", async ({ ledger, clock }) => {
    const [own, other] = [await begin(ledger, "a"), await begin(ledger, "b")];
    clock.now += DAY;
    const lapse = (lapsed: Session) =>
      ledger.begin({ ...own, id: crypto.randomUUID(), sequence: 1 }, { lapsed });
    assertEquals(await lapse({ ...own, sequence: 1 }), undefined);
    assertEquals(await lapse({ ...own, id: "missing" }), undefined);
    assertEquals(await ledger.sessions(), [own, other]);
    assertEquals(await lapse(own), { began: NOON + DAY, timeline: "A", intents: [] });
    assertEquals(await lapse(own), undefined, "once");
    const [first, second, third] = await ledger.sessions();
    assertEquals([first, second], [{ ...own, ended: "lapsed" }, other]);
    assertEquals([third?.sequence, third?.ended], [1, undefined], "as it was given");
    assertEquals([(await ledger.sessions()).length, await ledger.started()], [3, NOON]);
  });

  test("begin() after a loss starts the record again, a lease later, and changes nothing else", async ({ ledger, clock, rows }) => {
    const [own, other] = [await begin(ledger, "a"), await begin(ledger, "b")];
    await addRows(ledger, [ROW]);
    for (const id of ["a", "missing"]) {
      clock.now += DAY;
      const next = await begin(ledger, undefined, { lost: { ...own, id, sequence: 7 } });
      assertEquals([next.began, await ledger.started()], [clock.now, clock.now + LEASE_MS]);
      assertEquals(await ledger.session("a"), { ...own, ended: "lapsed" });
      assertEquals(await ledger.session("b"), other, "nobody else's session ends");
    }
    assertEquals(await rows(), [ROW], "calls stay");
  });

  test("begin() registers a session once, however often it is sent", async ({ ledger, clock }) => {
    const lapsed = await begin(ledger, "a");
    await begin(ledger, "b", { lapsed });
    clock.now += 5;
    clock.timeline = "B";
    const again = await begin(ledger, "b");
    assertEquals([again.began, again.timeline], [NOON + 5, "B"]);
    assertEquals(await ledger.sessions(), [{ ...lapsed, ended: "lapsed" }, again]);
  });

  test("begin() takes the intents of the previous session, and renews them", async ({ ledger, clock }) => {
    for (const how of ["lapsed", "lost"] as const) {
      const [first, other] = [await begin(ledger), await begin(ledger)];
      for (const sequence of [0, 1]) await sendHeartbeat(ledger, { ...first, sequence }, {});
      const own = { ...first, sequence: 2, reported: clock.now };
      for (const [id, session] of [["a", own], ["b", own], ["c", other]] as const) {
        assert(await ledger.intend({ id: how + id, route: "/v1" }, session));
      }
      const written = clock.now;
      clock.now += 5_000;
      const next = { ...own, id: crypto.randomUUID(), sequence: 1 };
      const begun = await ledger.begin(next, { [how]: own });
      assertEquals(begun?.intents.toSorted(), [`${how}a`, `${how}b`]);
      const intents = (await ledger.intents()).filter(({ id }) => id.startsWith(how));
      assertEquals(intents.map(({ session, since, until }) => [session, since, until]), [
        ...Array(2).fill([next.id, written, clock.now + LEASE_MS]),
        [other.id, written, written + LEASE_MS],
      ]);
      // Sent again, because its outcome was unknown, it has them already.
      assert(
        await ledger.intend({ id: `${how}d`, route: "/v1" }, { ...own, ...next, timeline: "A" }),
      );
      const again = await ledger.begin(next);
      assertEquals(again?.intents.toSorted(), [`${how}a`, `${how}b`, `${how}d`]);
      // It keeps the one that it had asked for by then, and deletes the others of its past.
      const kept = { ...NOTHING, at: clock.now, sequence: 1, kept: [`${how}a`] };
      const part = { counts: [], at: 0, heartbeat: { intents: kept, isStopped: false } };
      const session = { ...own, ...next, began: clock.now, reported: clock.now };
      assert(await ledger.add(part, session, FOREVER));
      const left = (await ledger.intents()).filter(({ id }) => id.startsWith(how));
      assertEquals(left.map(({ id }) => id.at(-1)).toSorted(), ["a", "c", "d"]);
    }
  });

  test("callsToOthers() sums the calls from a day on to routes but those given", async ({ ledger }) => {
    await addRows(ledger, [
      { ...ROW, last: NOON - 2 * DAY },
      ROW,
      { ...ROW, last: NOON + 5, status: "5xx", calls: 4 },
      { ...ROW, client: "app b", calls: 1, last: NOON + 9 },
      { ...ROW, impact: "none" as const, client: "a probe" },
      { ...ROW, route: "/v1" },
      { ...ROW, route: "/v2" },
    ]);
    const [{ route }, from] = [ROW, "2027-02-01"];
    const expected = [
      { route, client: "app b", calls: 1, last: NOON + 9 },
      { route, client: "curl", calls: 7, last: NOON + 5 },
    ];
    assertEquals(await ledger.callsToOthers(["/v1", "/v2"], from), expected);
    const all = (await ledger.callsToOthers([], from)).map(({ route, calls }) => [route, calls]);
    assertEquals(all, [[route, 1], [route, 7], ["/v1", 3], ["/v2", 3]]);
    assertEquals(await ledger.callsToOthers(["/v1", "/v2", route], from), []);
  });

  test("mount() records the routes of a session that has not ended, on disk", async ({ ledger, run }) => {
    const { policies } = await begin(ledger, "a");
    const policy = definePolicy({ deprecatedAt: "2027-01-01" });
    const mounts = {
      policies: { "/v1": policy },
      unmounted: { "/v2": policy },
    };
    const read = async (id: string) => {
      const { policies, unmounted } = await ledger.session(id) ?? {};
      return { policies, unmounted };
    };
    assertEquals(await read("a"), { policies, unmounted: undefined });
    run.length = 0;
    assertEquals(await ledger.mount({ id: "a" }, mounts), true);
    assertEquals(run, ["BEGIN, synced", "UPDATE media_head_session"]);
    assertEquals(await read("a"), JSON.parse(JSON.stringify(mounts)));
    const all = { policies: { ...mounts.policies, ...mounts.unmounted } };
    assertEquals(await ledger.mount({ id: "a" }, all), true);
    assertEquals(await read("a"), {
      ...JSON.parse(JSON.stringify(all)),
      unmounted: undefined,
    });
    assertEquals(await ledger.mount({ id: "missing" }, all), false);
    await ledger.begin({ ...await begin(ledger, "b"), id: "c" }, {
      lost: await ledger.session("a"),
    });
    assertEquals(await ledger.mount({ id: "a" }, mounts), false, "ended");
  });

  test("begin() records what a session has mounted, also if it is sent again", async ({ ledger }) => {
    const session = await begin(ledger, "a");
    for (const unmounted of [{ "/v1": definePolicy({ deprecatedAt: "2027-01-01" }) }, undefined]) {
      await ledger.begin({ ...session, unmounted });
      assertEquals(
        (await ledger.session("a"))?.unmounted,
        unmounted && JSON.parse(JSON.stringify(unmounted)),
      );
    }
  });

  test("hold() records a hold, which every heartbeat and every intent brings back", async ({ ledger, clock, run }) => {
    const session = await begin(ledger);
    const until = NOON + DAY;
    const all = await ledger.hold({ route: undefined, until, because: 'Zahlungen "ruhen" 🎧' });
    assertEquals(run.slice(-2), ["BEGIN, synced", "INSERT INTO media_head_hold"]);
    clock.now += 5;
    const one = await ledger.hold({ route: "/v1", until: until + 1, because: "b" });
    const expected = {
      holds: [
        { ...one, route: "/v1", since: NOON + 5, until: until + 1, released: undefined },
        { ...all, route: undefined, since: NOON, until, released: undefined },
      ],
      faults: [],
    };
    assertEquals(await ledger.holds(), expected);
    const part = { counts: [CALLS], at: NOON };
    assertEquals((await ledger.add(part, session, FOREVER))?.holds, undefined);
    const idle = { counts: [], at: NOON, heartbeat: HEARTBEAT };
    const next = { ...session, sequence: 1 };
    assertEquals((await ledger.add(idle, next, FOREVER))?.holds, expected);
    const later = { ...session, sequence: 2 };
    assertEquals(
      (await ledger.add({ ...part, heartbeat: HEARTBEAT }, later, FOREVER))?.holds,
      expected,
    );
    const intent = { id: "i", route: "/v1" };
    assertEquals(await ledger.intend(intent, { ...session, sequence: 3 }), expected);
  });

  test("release() ends holds that last, and no others", async ({ ledger, clock }) => {
    const hold = (until: number) => ledger.hold({ route: "/v1", until, because: "b" });
    const [over, first, second] = [
      await hold(NOON + 5),
      await hold(NOON + DAY),
      await hold(NOON + DAY),
    ];
    clock.now += 5;
    assertEquals(await ledger.release([over.id, first.id]), [first.id]);
    clock.now += 5;
    assertEquals(await ledger.release([first.id]), []);
    const { holds } = await ledger.holds();
    const released = new Map(holds.map(({ id, released }) => [id, released]));
    assertEquals([over, first, second].map(({ id }) => released.get(id)), [
      undefined,
      NOON + 5,
      undefined,
    ]);
  });

  test("holds() ignores a hold that the command cannot have recorded", async ({ ledger, database }) => {
    const { id } = await ledger.hold({ route: "/v1", until: NOON + 1, because: "b" });
    const wrong = [
      ["'longer'", "'/v1'", NOON, NOON + 90 * DAY + 1, null, "'b'"],
      ["'route'", "'a' || char(10)", NOON, NOON + 1, null, "'b'"],
      ["'reason'", "'/v1'", NOON, NOON + 1, null, "'a' || char(10)"],
      ["'blank'", "'/v1'", NOON, NOON + 1, null, "' '"],
      ["'long'", "'/v1'", NOON, NOON + 1, null, `'${"x".repeat(201)}'`],
      ["'unsafe'", "'/v1'", -8.64e15, 8.64e15, null, "'b'"],
    ];
    const char = (text: unknown) =>
      `${text}`.replaceAll("char(10)", database.batch === 20 ? "char(10)" : "chr(10)");
    for (const values of wrong) {
      const text = `INSERT INTO media_head_hold (id, route, since, until, released, because)
                    VALUES (${values.map(char).join(", ")})`;
      await database.transact([{ text }]);
    }
    const later = `INSERT INTO media_head_hold (id, since, until, because)
                   VALUES ('later', ${NOON + 1}, ${NOON + 2}, 'b')`;
    await database.transact([{ text: later }]);
    const { holds, faults } = await ledger.holds();
    assertEquals(holds.map((hold) => hold.id), [id]);
    assertEquals(faults.length, wrong.length);
    for (const [name] of wrong) {
      const named = faults.find((fault) => fault.includes(`[${`${name}`.replaceAll("'", '"')},`));
      assertMatch(named ?? "", /^a hold is ignored: /, `${name}`);
    }
  });

  test("intend() writes an intent of a session that is as the process knows it", async ({ ledger, clock, run }) => {
    const session = await begin(ledger, "a");
    await ledger.add({ counts: [], at: 0, heartbeat: HEARTBEAT }, session, FOREVER);
    const now = clock.now += 5;
    const known = { ...session, sequence: 1 };
    const intend = (id: string, changes: Partial<Session> = {}) =>
      ledger.intend({ id, route: "/v1" }, { ...known, ...changes });
    for (const changes of [{ sequence: 0 }, { sequence: 2 }, { id: "missing" }]) {
      assertEquals(await intend("void", changes), undefined, JSON.stringify(changes));
    }
    clock.timeline = "B";
    assertEquals(await intend("void"), undefined, "the database failed over");
    clock.timeline = "A";
    run.length = 0;
    assertEquals(await intend("i"), { holds: [], faults: [] });
    assertEquals(run, ["BEGIN, synced", "INSERT INTO media_head_intent"]);
    const intent = { id: "i", session: "a", route: "/v1", since: now, until: now + LEASE_MS };
    assertEquals(await ledger.intents(), [{ ...intent, settled: undefined }]);
    const stop = { counts: [], at: 0, heartbeat: { ...HEARTBEAT, isStopped: true } };
    await ledger.add(stop, known, FOREVER);
    assertEquals(await intend("void", { sequence: 2 }), undefined, "it has stopped");
    const [lapsed, next] = [await begin(ledger, "b"), await begin(ledger, "c")];
    await begin(ledger, "d", { lapsed });
    assertEquals(await intend("void", lapsed), undefined, "it has lapsed");
    assert(await intend("j", next));
    assertEquals((await ledger.intents()).map(({ id }) => id), ["i", "j"]);
  });

  test("a heartbeat keeps, settles, renews and deletes intents", async ({ ledger, clock }) => {
    const [session, other] = [await begin(ledger, "a"), await begin(ledger, "b")];
    const routes = ["kept", "settled", "renewed", "given up", "quiet"];
    for (const id of routes) await ledger.intend({ id, route: "/v1" }, session);
    await ledger.intend({ id: "other's", route: "/v1" }, other);
    await sendHeartbeat(ledger, session, { sequence: 0, kept: routes });
    const at = clock.now += 5_000;
    const next = { ...session, sequence: 1 };
    await ledger.intend({ id: "given up late", route: "/v1" }, next);
    await ledger.intend({ id: "asked", route: "/v1" }, next); // after the heartbeat was written
    clock.now += 9;
    const time = await sendHeartbeat(ledger, next, {
      at,
      sequence: 1,
      kept: ["kept", "settled", "renewed"],
      settled: ["settled"],
      renewed: ["renewed"],
    });
    assertEquals([time?.databaseTime, time?.now], [clock.now, clock.now]);
    const intents = await ledger.intents();
    const facts = new Map(intents.map(({ id, until, settled }) => [id, [until, settled]]));
    assertEquals(
      facts,
      new Map<string, unknown>([
        ["kept", [NOON + LEASE_MS, undefined]],
        ["renewed", [clock.now + LEASE_MS, undefined]],
        ["settled", [NOON + LEASE_MS, at]],
        ["other's", [NOON + LEASE_MS, undefined]],
        ["asked", [at + LEASE_MS, undefined]],
        ["given up late", [at + LEASE_MS, undefined]],
      ]),
    );
    await sendHeartbeat(ledger, { ...session, sequence: 2 }, { at, sequence: 2, kept: ["asked"] });
    assertEquals((await ledger.intents()).map(({ id }) => id), ["other's", "asked"]);
  });

  test("a heartbeat deletes no newer intent, whatever the clock was set to", async ({ ledger, clock }) => {
    const session = await begin(ledger);
    const at = clock.now = NOON + 30_000;
    for (const now of [NOON + 10, at, at + 1]) {
      clock.now = now;
      await ledger.intend({ id: `${now}`, route: "/v1" }, session);
    }
    clock.now = NOON + 60_000; // the heartbeat is sent again
    await sendHeartbeat(ledger, session, { at, sequence: 0 });
    assertEquals((await ledger.intents()).length, 3);
  });

  test("a heartbeat that is not recorded changes no intent", async ({ ledger, clock }) => {
    const session = await begin(ledger);
    await ledger.intend({ id: "i", route: "/v1" }, session);
    const intents = await ledger.intents();
    clock.now += DAY;
    const all = { at: clock.now, sequence: 9, settled: ["i"], renewed: ["i"] };
    assertEquals(await sendHeartbeat(ledger, { ...session, sequence: 1 }, all), undefined);
    clock.timeline = "B";
    assertEquals(await sendHeartbeat(ledger, session, all), undefined);
    assertEquals(await ledger.intents(), intents);
  });

  test("the last heartbeat deletes every intent but those of calls in flight", async ({ ledger }) => {
    const session = await begin(ledger);
    for (const id of ["in flight", "given up"]) {
      await ledger.intend({ id, route: "/v1" }, session);
    }
    const intents = { ...NOTHING, at: NOON, sequence: 0, kept: ["in flight"] };
    const part = { counts: [], at: NOON, heartbeat: { intents, isStopped: true } };
    assert(await ledger.add(part, session, FOREVER));
    assertEquals((await ledger.intents()).map(({ id }) => id), ["in flight"]);
  });

  test("restart() starts the record a lease later, brings the future to now, and deletes nothing", async ({ ledger, clock, rows }) => {
    const before = await begin(ledger, "a");
    await ledger.intend({ id: "i", route: "/v1" }, before);
    const early = await ledger.hold({ route: undefined, until: NOON + 9 * DAY, because: "b" });
    clock.now = NOON + 3 * DAY;
    const after = await begin(ledger, "b");
    await ledger.intend({ id: "j", route: "/v1" }, after);
    await sendHeartbeat(ledger, after, { at: clock.now, sequence: 0, kept: ["j"], settled: ["j"] });
    const hold = { route: "/v1", until: clock.now + DAY, because: "b" };
    const [{ id }, { id: other }] = [await ledger.hold(hold), await ledger.hold(hold)];
    await ledger.release([id, early.id]);
    const later = { ...ROW, client: "later", last: NOON + DAY };
    const today = { ...ROW, client: "today", last: NOON + 5 };
    const merged = [-DAY, 0, DAY, 2 * DAY].map((past) => ({ ...ROW, last: NOON + past }));
    await addRows(ledger, [...merged, later, today]);
    const now = clock.now = NOON + 1;
    assertEquals(await ledger.restart(), now + LEASE_MS);
    assertEquals([await ledger.started(), (await ledger.time()).now], [now + LEASE_MS, now]);
    assertEquals(await ledger.session("a"), before);
    const moved = { ...after, sequence: 1, began: now, reported: now };
    assertEquals(await ledger.session("b"), moved, "still open");
    assertEquals(
      (await ledger.histories()).map(({ client, calls, days, last }) => {
        return `${client}: ${calls} on ${days} until ${last}`;
      }).toSorted(),
      [
        "curl: 12 on 2 until 2027-02-01",
        "later: 3 on 1 until 2027-02-01",
        "today: 3 on 1 until 2027-02-01",
      ],
    );
    assertEquals(await rows(), [
      { ...ROW, day: "2027-01-31", last: NOON - DAY },
      { ...ROW, calls: 9, last: now },
      { ...later, last: now },
      { ...today, last: now },
    ]);
    const intent = { session: "a", route: "/v1", since: NOON, settled: undefined };
    assertEquals(await ledger.intents(), [
      { ...intent, id: "i", until: NOON + LEASE_MS },
      { ...intent, id: "j", session: "b", since: now, until: now + LEASE_MS, settled: now },
    ]);
    const { holds } = await ledger.holds();
    const kept = { ...hold, since: now, until: now + DAY };
    assertEquals(
      new Set(holds),
      new Set([
        { ...early, released: now },
        { ...kept, id, released: now },
        { ...kept, id: other, released: undefined },
      ]),
    );
  });

  test("forget() removes days, sessions that ended before, intents and holds", async ({ ledger, clock, rows }) => {
    const [before, on] = [await begin(ledger, "before"), await begin(ledger, "on it")];
    await begin(ledger, "open");
    const silent = await begin(ledger, "silent");
    await ledger.intend({ id: "i", route: "/v1" }, silent); // until noon of the next day
    const hold = await ledger.hold({ route: undefined, until: NOON + DAY, because: "b" });
    for (const now of [NOON + 2 * DAY + 1, NOON + DAY - 1]) {
      assertEquals(await ledger.forget("2029-01-01", now), false, "nobody counted a day ago");
    }
    const many = Array.from({ length: 501 }, (_, index) => ({ ...CALLS, client: `${index}` }));
    const heartbeat = { ...HEARTBEAT, isStopped: true };
    await ledger.add({ counts: many, at: NOON, heartbeat }, before, FOREVER);
    const now = clock.now = Date.parse("2027-02-02");
    await ledger.add({ counts: [CALLS], at: now, heartbeat }, on, FOREVER);
    const forget = async (day: string) => {
      assertEquals(await ledger.forget(day, NOON + 2 * DAY), true);
      const [sessions, intents] = [await ledger.sessions(), await ledger.intents()];
      const { holds } = await ledger.holds();
      return [...sessions, ...intents, ...holds]
        .map(({ id }) => id === hold.id ? "a hold" : id).toSorted();
    };
    assertEquals(await forget("2027-02-01"), ["a hold", "before", "i", "on it", "open", "silent"]);
    assertEquals([await ledger.started(), (await rows()).length], [NOON, 502]);
    assertEquals(
      await forget("2027-02-02"),
      ["a hold", "i", "on it", "silent"],
      "its calls may be missing",
    );
    assertEquals(await rows(), [{ ...ROW, day: "2027-02-02", last: now }]);
    assertEquals(await ledger.started(), now);
    await ledger.forget("2027-02-01", NOON + 2 * DAY); // by a server that retains more
    assertEquals(await ledger.started(), now);
    assertEquals(await forget("2027-02-03"), []);
  });

  test("forget() retains the days on which clients called three times as long", async ({ ledger }) => {
    const days = [-9, -7, -6, -3, 0].map((past) => ({ ...ROW, last: NOON + past * DAY }));
    await addRows(ledger, [...days, { ...ROW, client: "old", last: NOON - 8 * DAY }]);
    await begin(ledger, "open");
    const now = NOON + 2 * DAY;
    await ledger.add({ counts: [], at: NOON, heartbeat: HEARTBEAT }, await begin(ledger), FOREVER);
    assertEquals(await ledger.forget("2027-01-31", now), true); // three days before now
    const [history, ...others] = await ledger.histories();
    assertEquals([history?.first, history?.days, others.length], ["2027-01-25", 4, 0]);
    assertEquals([await ledger.hasClient("curl"), await ledger.hasClient("old")], [true, false]);
  });

  test("timeline() returns the database's, and refuses a replica's", async ({ database, ledger, clock }) => {
    assertEquals(await ledger.timeline(), "A");
    clock.timeline = "B";
    assertEquals(await ledger.timeline(), "B");
    const replica = ledgerAt(database, () => NOON, () => "NULL");
    await assertRejects(
      () => replica.timeline(),
      RefusedError,
      "the database is a replica, which may be behind; expected the primary",
    );
  });
}

/** A history of one day. */
const one = (day: string, calls: number) => {
  return { calls, days: 1, first: day, last: day, lastCalls: calls, pause: undefined };
};

/** The intents of a heartbeat that keeps none. */
const NOTHING = { kept: [], settled: [], renewed: [] };

/** Sends a heartbeat with intents. */
async function sendHeartbeat(ledger: Ledger, session: Session, intents: Partial<HeartbeatIntents>) {
  const all = { ...NOTHING, at: NOON, sequence: 0, ...intents };
  const part = { counts: [], at: NOON, heartbeat: { intents: all, isStopped: false } };
  return await ledger.add(part, session, FOREVER);
}

/** Returns a database that notes each statement that it runs to write. */
function noting(database: Database, run: string[]): Database {
  const note = ({ text }: Statement) => {
    run.push(/^[A-Z]+(?: INTO| FROM)? \w+/.exec(text.trim())?.[0] ?? text);
  };
  return {
    currentTime: database.currentTime,
    timeline: database.timeline,
    unlessLocked: database.unlessLocked,
    batch: database.batch,
    listOf: (columns) => database.listOf(columns),
    rowsOf: (...args) => database.rowsOf(...args),
    query: (statement) => database.query(statement),
    queryAfterChanges: (...args) => database.queryAfterChanges(...args),
    write(statement) {
      note(statement);
      return database.write(statement);
    },
    transact(statements, options) {
      run.push(options?.isSynced ? "BEGIN, synced" : "BEGIN");
      statements.forEach(note);
      return database.transact(statements, options);
    },
  };
}
