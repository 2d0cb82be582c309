/** The suite of every ledger. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Database } from "../../../lib/database/sql/database.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { callerOf } from "../../../lib/usage/record/client_names.ts";
import { Ledger, type NewSession } from "../../../lib/usage/record/ledger.ts";
import {
  type Impact,
  MAX_PART_ROWS,
  type Part,
  type Session,
  type UsageRow,
} from "../../../lib/usage/record/records.ts";
import { COUNT, DAY, NOON, PROCESS } from "../../support/counted_call.ts";
import { ledgerAt } from "../../support/ledger_at.ts";
import { addRows, begin, HEARTBEAT } from "../../support/ledger_rows.ts";
import type { Test } from "../../support/permissions.ts";
import { NAMED_USER_AGENTS } from "../../support/user_agents.ts";

const MINUTE = 60_000;
const CALLS = { ...COUNT, client: "curl", release: "8", calls: 3 };
const ROW: UsageRow = { ...CALLS, day: "2027-02-01", last: NOON };
const POLICIES = { "/v1": definePolicy({ deprecatedAt: "2027-01-01" }) };

/** A ledger, and the clock of its database, whose time begins at noon. */
interface Subject {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly clock: { now: number };
  readonly rows: () => Promise<UsageRow[]>;
  /** Sends a part to a session, and returns whether it was written. */
  readonly write: (
    session: Pick<Session, "id" | "sequence">,
    part?: Partial<Part>,
  ) => Promise<boolean>;
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
      const clock = { now: NOON };
      const ledger = ledgerAt(database, () => clock.now);
      const rows = () => Array.fromAsync(ledger.usage(""));
      const write: Subject["write"] = async (session, part = {}) =>
        await ledger.write({ ...HEARTBEAT, ...part }, session, undefined) !== undefined;
      await body({ database, ledger, clock, rows, write });
    });

  test("merges rows with the same key, and keeps others apart", async ({ database, rows }) => {
    await addRows(database, [ROW]);
    await addRows(database, [{ ...ROW, calls: 2, last: NOON - 9 }]);
    assertEquals(await rows(), [{ ...ROW, calls: 5 }]);
    await addRows(database, [{ ...ROW, calls: 1, last: NOON + 9 }]);
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
    await addRows(database, added);
    assertEquals(new Set(await rows()), new Set([first, ...added]));
  });

  test("has any number of rows, with every name", async ({ database, ledger, rows }) => {
    const ids = ["!", "~".repeat(64), "'; DROP TABLE media_head_usage; --"];
    const callers = [
      ...NAMED_USER_AGENTS.map(([, userAgent]) => new Headers({ "User-Agent": userAgent })),
      ...ids.map((id) => new Headers({ "X-Id": id })),
    ].map((fields) => callerOf(fields, fields.get("x-id") ?? undefined).name);
    const many = Array.from({ length: 1_001 }, (_, index) => `${index}`.padStart(64, "c"));
    const names = [...new Set([...callers, ...many])].sort();
    assert(names.includes("app 播客") && names.includes("id !"), "the table has hard names");
    for (const round of [1, 2]) {
      await addRows(database, names.map((client) => ({ ...ROW, client })));
      const recorded = await rows();
      assertEquals(recorded.map(({ client }) => client).sort(), names);
      assert(recorded.every(({ calls }) => calls === 3 * round));
    }
    assertEquals([await ledger.hasClient("id !"), await ledger.hasClient("id")], [true, false]);
  });

  test("usage() lists the rows from a day on, ordered by day", async ({ database, ledger }) => {
    const days = ["2027-02-03", "2026-12-31", "2027-02-01", "2027-02-02"];
    await addRows(database, days.map((day) => ({ ...ROW, last: Date.parse(day) })));
    const from = async (day: string) => await Array.fromAsync(ledger.usage(day), ({ day }) => day);
    assertEquals(await from("2027-02-02"), ["2027-02-02", "2027-02-03"]);
    assertEquals(await from(""), days.toSorted());
    assertEquals(await from("2027-02-04"), []);
  });

  test("histories() has the days with calls of each client, and the longest pause", async ({ database, ledger }) => {
    assertEquals(await ledger.histories(), []);
    const on = (day: string, more: Partial<UsageRow> = {}): UsageRow => {
      return { ...ROW, last: Date.parse(day), ...more };
    };
    await addRows(database, [
      on("2026-11-01", { calls: 12 }),
      on("2026-11-02", { calls: 1 }),
      on("2027-02-01", { calls: 4, release: "" }),
      on("2027-02-01", { calls: 5, release: "9", method: "GET", status: "5xx" }),
      on("2027-02-03", { impact: "none" }),
      on("2027-02-02", { client: "once", calls: 7 }),
      on("2027-02-02", { client: "nobody", impact: "none" }),
      on("2027-02-02", { route: "/video/:token" }),
      on("2027-02-05", { route: "/video/:token" }),
    ]);
    await addRows(database, [on("2027-02-01", { calls: 2 })]);
    const found = (await ledger.histories()).map((history) => {
      const { route, client, calls, days, first, last, lastCalls, pause } = history;
      return `${route} ${client}: ${calls} on ${days}, ${first} to ${last} (${lastCalls}), ${pause}`;
    });
    assertEquals(found.toSorted(), [
      "/audio/:token curl: 24 on 3, 2026-11-01 to 2027-02-01 (11), 91",
      "/audio/:token once: 7 on 1, 2027-02-02 to 2027-02-02 (7), undefined",
      "/video/:token curl: 6 on 2, 2027-02-02 to 2027-02-05 (3), 3",
    ]);
    assertEquals((await ledger.clientsSince("2027-02-02")).toSorted(), ["curl", "once"]);
    assertEquals(await ledger.clientsSince("2027-02-03"), ["curl"]);
  });

  test("callsToOthers() sums the calls from a day on to routes but those given", async ({ database, ledger }) => {
    await addRows(database, [
      { ...ROW, last: NOON - 2 * DAY },
      ROW,
      { ...ROW, last: NOON + 5, status: "5xx", calls: 4 },
      { ...ROW, client: "app b", calls: 1, last: NOON + DAY },
      { ...ROW, impact: "none" as const, client: "a probe" },
      { ...ROW, route: "/v1" },
      { ...ROW, route: "/v2" },
    ]);
    const [{ route }, from] = [ROW, "2027-02-01"];
    const expected = [
      { route, client: "app b", calls: 1, last: "2027-02-02" },
      { route, client: "curl", calls: 7, last: from },
    ];
    assertEquals(await ledger.callsToOthers(["/v1", "/v2"], from), expected);
    const all = (await ledger.callsToOthers([], from)).map(({ route, calls }) => [route, calls]);
    assertEquals(all, [[route, 1], [route, 7], ["/v1", 3], ["/v2", 3]]);
    assertEquals(await ledger.callsToOthers(["/v1", "/v2", route], from), []);
  });

  test("time() is the clock, or the latest report if later", async ({ database, ledger, clock }) => {
    assertEquals(await ledger.time(), { databaseTime: NOON, now: NOON });
    await begin(ledger);
    clock.now -= 5;
    assertEquals(await ledger.time(), { databaseTime: NOON - 5, now: NOON });
    clock.now += 9;
    assertEquals(await ledger.time(), { databaseTime: NOON + 4, now: NOON + 4 });
    const own = (await new Ledger(database).time()).databaseTime; // on this machine
    assert(Math.abs(own - Date.now()) < MINUTE, `${own} is not the time`);
  });

  test("begin() records all of a session, once", async ({ ledger, clock, rows }) => {
    const session: NewSession = {
      ...{ id: "a", opened: "o", process: PROCESS, policies: POLICIES, onDemand: true },
      ...{ publicUrl: "https://a.test", contact: "mailto:a@a.test", retainDays: 7 },
      ...{ start: NOON - 5, continued: undefined, isClockBehind: false },
    };
    const part = { ...HEARTBEAT, counts: [CALLS], before: NOON };
    const begins = { holds: { holds: [], faults: [] }, lost: undefined };
    assertEquals(await ledger.begin(session, part), begins);
    const { start: _, continued: _a, isClockBehind: _b, ...facts } = session;
    const begun = { began: NOON, reported: NOON, written: NOON, sequence: 1 };
    const all = { ...facts, ...begun, ended: undefined, lost: undefined };
    const recorded = { ...all, policies: JSON.parse(JSON.stringify(POLICIES)) };
    assertEquals(await ledger.session("a"), recorded);
    const other = await begin(ledger, { id: "b", opened: "o" });
    clock.now += 5;
    assertEquals(await ledger.begin(session, part), undefined, "sent again");
    const continued = { ...recorded, ended: "continued" } as const;
    assertEquals(await ledger.sessions(), [continued, other], "it ends nothing");
    assertEquals(await rows(), [ROW], "and counts nothing");
    const bare = { machine: undefined, publicUrl: undefined, contact: undefined };
    const { machine, ...rest } = bare;
    const third = await begin(ledger, { ...rest, process: { ...PROCESS, machine } });
    assertEquals([third.process.machine, third.publicUrl, third.contact], Array(3).fill(machine));
  });

  /**
   * When a session has reported that begins at noon, in milliseconds before or after that: its process
   * opened the record at a start, and has reported earlier, if it has. Without a time before, more parts
   * follow.
   */
  const BEGINNINGS: [
    what: string,
    earlier: number | undefined,
    start: number,
    before: number | undefined,
    reported: number,
    loss?: Pick<NewSession, "continued">,
  ][] = [
    ["first", undefined, -9, -2, -2],
    ["first, more parts follow", undefined, -9, undefined, -9],
    ["first, by a process of the future", undefined, 9, 0, 0],
    ["next", -7, -9, -2, -2],
    ["next, more parts follow", -7, -9, undefined, -7],
    ["next, late", -7, -9, -8, -7],
    ["next, by a time to come", -7, -9, 2, -7],
    ["after a loss", -7, -9, -2, -2, { continued: LOST }],
    ["after a loss of all", undefined, -9, 0, 0, { continued: LOST }],
  ];

  test("begin() has what was reported before, until the last part is written", async ({ ledger, clock }) => {
    for (const [opened, earlier, start, before, reported, loss] of BEGINNINGS) {
      clock.now = NOON;
      if (earlier !== undefined) {
        const time = NOON + earlier;
        await begin(ledger, { opened, start: time }, { before: time });
      }
      const part = before === undefined ? { isLast: false } : { before: NOON + before };
      const begun = await begin(ledger, { opened, start: NOON + start, ...loss }, part);
      const times = [begun.began, begun.reported, begun.written].map((time) => time - NOON);
      assertEquals(times, [0, reported, 0], opened);
      assertEquals(begun.lost, loss && NOON + (earlier ?? start), opened);
    }
  });

  test("begin() loses nothing where the session before is as the process has written it", async ({ ledger }) => {
    const { id, opened } = await begin(ledger);
    for (const [sequence, lost] of [[1, undefined], [2, NOON]]) {
      const continued = { id, sequence: sequence as number };
      assertEquals((await begin(ledger, { opened, continued })).lost, lost, `${sequence}`);
    }
  });

  test("begin() ends the sessions that its process began before", async ({ ledger }) => {
    const opened = "o";
    await begin(ledger, { id: "of another" });
    await begin(ledger, { id: "stopped", opened }, { isStopped: true });
    for (const id of ["first", "second"]) await begin(ledger, { id, opened });
    const ended = (await ledger.sessions()).map(({ id, ended }) => [id, ended]);
    assertEquals(
      Object.fromEntries(ended),
      { "of another": undefined, stopped: "stopped", first: "continued", second: undefined },
    );
  });

  test("write() adds a part once, to the session that the process knows", async ({ ledger, clock, rows, write }) => {
    const session = await begin(ledger);
    const part = { counts: [CALLS], before: NOON };
    assertEquals(await write({ ...session, sequence: 2 }, part), false, "further on");
    assertEquals(await write({ ...session, id: "b" }, part), false, "missing");
    assertEquals(await write(session, part), true);
    assertEquals(await write(session, part), false, "sent again");
    clock.now += 9;
    const next = { ...session, sequence: 2 };
    const stop = { before: NOON + 3, isStopped: true };
    assertEquals(await write(next, { ...stop, isLast: false }), true);
    const extended = { ...session, sequence: 3, written: NOON + 9 };
    assertEquals(await ledger.session(session.id), extended, "another part follows");
    assertEquals(await write(extended, stop), true);
    assertEquals(await write({ ...session, sequence: 4 }, part), false, "stopped");
    assertEquals(await rows(), [ROW]);
    const stopped = { ...extended, sequence: 4, reported: NOON + 3, ended: "stopped" } as const;
    assertEquals(await ledger.sessions(), [stopped]);
    await begin(ledger, { id: "c", opened: "o" });
    await begin(ledger, { opened: "o" }, { before: NOON + 9 });
    assertEquals(await write({ id: "c", sequence: 1 }, part), false, "continued");
  });

  test("write() reports the time before the counts were taken, as far as it has passed", async ({ ledger, clock, write }) => {
    let session = await begin(ledger);
    const rows: [before: number, reported: number][] = [
      [NOON + 7, NOON + 7],
      [NOON + 6, NOON + 7], // set back in between
      [NOON + 7, NOON + 7],
      [NOON + 10, NOON + 10],
      [NOON + 11, NOON + 10], // set back since
    ];
    clock.now = NOON + 10;
    for (const [before, reported] of rows) {
      assert(await write(session, { before }));
      const next = await ledger.session(session.id) as Session;
      assertEquals(next, {
        ...session,
        sequence: session.sequence + 1,
        reported,
        written: NOON + 10,
      });
      session = next;
    }
  });

  test("write() refuses the last part after a minute that the process has not lived through", async ({ ledger, clock, rows, write }) => {
    const session = await begin(ledger);
    clock.now = NOON + 5_000 + MINUTE;
    const part = { counts: [CALLS], before: clock.now };
    for (const lived of [0, 4_999, 5_000]) {
      assertEquals(await write(session, { ...part, lived }), false, `${lived}`);
    }
    assertEquals([await ledger.session(session.id), await rows()], [session, []]);
    assert(await write(session, { ...part, lived: 0, isLast: false }), "counts alone are added");
    const next = { ...session, sequence: 2 };
    assert(await write(next, { ...part, lived: 5_001 }), "it has lived a millisecond longer");
  });

  test("dates calls with the ledger's time at which they are written", async ({ ledger, clock, rows, write }) => {
    const midnight = NOON + DAY / 2;
    clock.now = midnight - 1;
    const session = await begin(ledger, { start: midnight - 9 }, {
      counts: [CALLS],
      before: midnight - 9,
    });
    clock.now = midnight;
    assert(await write(session, { counts: [CALLS], before: midnight - 1 }));
    await begin(ledger, {}, { before: midnight });
    clock.now = midnight - 5; // set back: the latest report is later
    assert(await write({ ...session, sequence: 2 }, { counts: [CALLS] }));
    assertEquals(await rows(), [
      { ...ROW, last: midnight - 1 },
      { ...ROW, day: "2027-02-02", calls: 6, last: midnight },
    ]);
    const [history] = await ledger.histories();
    assertEquals([history?.days, history?.calls, history?.lastCalls], [2, 9, 6]);
  });

  test("write() changes the policies of a session from its beginning on, if there are others", async ({ ledger }) => {
    const { id, policies } = await begin(ledger);
    assertEquals(policies, {});
    await ledger.write(HEARTBEAT, { id, sequence: 1 }, POLICIES);
    const all = JSON.parse(JSON.stringify(POLICIES));
    assertEquals((await ledger.session(id))?.policies, all);
    await ledger.write(HEARTBEAT, { id, sequence: 2 }, undefined);
    assertEquals((await ledger.session(id))?.policies, all);
  });

  test("records nothing of a part with a malformed row", async ({ ledger, rows, write }) => {
    const session = await begin(ledger);
    const counts = Array.from({ length: 250 }, (_, index) => ({ ...CALLS, client: `${index}` }));
    const malformed = { counts: [...counts, { ...CALLS, impact: "some" as Impact }] };
    for (const _ of [1, 2, 3]) { // more often than there are connections
      await assertRejects(() => write(session, malformed), StorageError);
      await assertRejects(() => begin(ledger, {}, malformed), StorageError);
      assertEquals([await rows(), await ledger.sessions()], [[], [session]]);
    }
    assert(await write(session, { counts }));
    assertEquals((await rows()).length, 250);
  });

  test("every write brings the holds that have begun", async ({ database, ledger, clock, write }) => {
    const session = await begin(ledger);
    const until = NOON + DAY;
    const all = await ledger.hold({ route: undefined, until, because: 'Zahlungen "ruhen" 🎧' });
    clock.now += 5;
    const one = await ledger.hold({ route: "/v1", until: until + 1, because: "b" });
    assertEquals(all.since, NOON);
    const expected = { holds: [one, all], faults: [] }; // that which ends last comes first
    assertEquals(one, {
      ...{ id: one.id, route: "/v1", since: NOON + 5, until: until + 1 },
      ...{ released: undefined, because: "b" },
    });
    assertEquals(await ledger.holds(), expected);
    assertEquals(await ledger.write({ ...HEARTBEAT, isLast: false }, session, {}), expected);
    const next = { ...session, sequence: 2 };
    assertEquals(await ledger.write({ ...HEARTBEAT, counts: [CALLS] }, next, undefined), expected);
    const { id, opened } = session;
    const begun = await ledger.begin({ ...session, ...TIMES, id: `${id}2`, opened }, HEARTBEAT);
    assertEquals(begun?.holds, expected);
    assert(await write({ id: `${id}2`, sequence: 1 }, { before: clock.now }));
    clock.now -= 1;
    assertEquals(await ledger.holds(), expected, "by the ledger's time, they have begun");

    const many = Array.from({ length: 1_000 }, (_, index) => {
      return `('hold ${index}', ${NOON}, ${until - 1_000 + index}, 'b')`;
    });
    const columns = "id, since, until, because";
    const text = `INSERT INTO media_head_hold (${columns}) VALUES ${many.join(", ")}`;
    await database.transact([{ text }]);
    const { holds } = await ledger.holds();
    assertEquals([holds.length, holds[0]?.id, holds.at(-1)?.until], [1_000, one.id, until - 998]);
  });

  test("release() ends holds that last, and no others", async ({ ledger, clock }) => {
    const hold = (until: number) => ledger.hold({ route: "/v1", until, because: "b" });
    const over = await hold(NOON + 5);
    const [first, second] = [await hold(NOON + DAY), await hold(NOON + DAY)];
    clock.now += 5;
    assertEquals(await ledger.release([over.id, first.id]), [first.id]);
    clock.now += 5;
    assertEquals(await ledger.release([first.id]), []);
    const { holds } = await ledger.holds();
    const released = Object.fromEntries(holds.map(({ id, released }) => [id, released]));
    assertEquals(released, { [over.id]: undefined, [first.id]: NOON + 5, [second.id]: undefined });
  });

  test("holds() ignores a hold that has not begun, and one that the command cannot have recorded", async ({ ledger, database }) => {
    const { id } = await ledger.hold({ route: "/v1", until: NOON + 1, because: "b" });
    const others: [id: string, since: number, until: number, because: string][] = [
      ["later", NOON + 1, NOON + 2, "b"],
      ["longer", NOON, NOON + 90 * DAY + 1, "b"],
      ["broken", NOON, NOON + 1, "a\nb"],
      ["unsafe", -8.64e15, 8.64e15, "b"],
    ];
    const text = `INSERT INTO media_head_hold (id, since, until, because)
                  VALUES ($1, CAST($2 AS bigint), CAST($3 AS bigint), $4)`;
    for (const values of others) await database.transact([{ text, values }]);
    const { holds, faults } = await ledger.holds();
    assertEquals(holds.map((hold) => hold.id), [id]);
    const ignored = faults.map((fault) => /^a hold is ignored: \["(.*?)"/.exec(fault)?.[1]);
    assertEquals(ignored.toSorted(), ["broken", "longer", "unsafe"]);
  });

  test("begin() brings the future to now where the clock is behind, and deletes nothing", async ({ database, ledger, clock, rows, write }) => {
    const before = await begin(ledger, { id: "before" });
    const early = await ledger.hold({ route: undefined, until: NOON + 9 * DAY, because: "b" });
    clock.now = NOON + 3 * DAY;
    const after = await begin(ledger, { id: "after" });
    const lost = await begin(ledger, { id: "lost", opened: after.opened, continued: LOST });
    const hold = { route: "/v1", until: clock.now + DAY, because: "b" };
    const [{ id }, { id: other }] = [await ledger.hold(hold), await ledger.hold(hold)];
    await ledger.release([id, early.id]);
    const later = { ...ROW, client: "later", last: NOON + DAY };
    const today = { ...ROW, client: "today", last: NOON + 5 };
    const merged = [-DAY, 0, DAY, 2 * DAY].map((past) => ({ ...ROW, last: NOON + past }));
    await addRows(database, [...merged, later, today]);

    const now = clock.now = NOON + 1;
    const { now: ahead } = await ledger.time();
    const counts = [{ ...CALLS, client: "new" }];
    const part = { counts, before: ahead };
    const next = await begin(ledger, { id: "next", start: ahead - 9, isClockBehind: true }, part);
    assertEquals([next.began, next.reported, next.written, next.ended], [now, now, now, undefined]);
    assertEquals([await ledger.started(), (await ledger.time()).now], [now, now]);
    assertEquals(await ledger.session("before"), before);
    const moved = { began: now, reported: now, written: now };
    assertEquals(await ledger.session("after"), { ...after, ...moved, ended: "continued" });
    assertEquals(await ledger.session("lost"), { ...lost, ...moved, lost: now }, "still open");
    assertEquals(
      (await ledger.histories()).map(({ client, calls, days, last }) => {
        return `${client}: ${calls} on ${days} until ${last}`;
      }).toSorted(),
      [
        "curl: 12 on 2 until 2027-02-01",
        "later: 3 on 1 until 2027-02-01",
        "new: 3 on 1 until 2027-02-01",
        "today: 3 on 1 until 2027-02-01",
      ],
    );
    assertEquals(await rows(), [
      { ...ROW, day: "2027-01-31", last: NOON - DAY },
      { ...ROW, calls: 9, last: now },
      { ...later, last: now },
      { ...ROW, client: "new", last: now },
      { ...today, last: now },
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
    clock.now += 5;
    assert(await write(next, { before: clock.now, lived: 5 }), "it goes on from there");
  });

  test("forget() removes days, sessions that ended before and holds, a few at a time", async ({ ledger, clock, rows, write }) => {
    const start = NOON - 10;
    const began = (id: string) => begin(ledger, { id, start }, { before: start });
    const [before, on, running] = [await began("before"), await began("on it"), await began("run")];
    await began("silent");
    const hold = await ledger.hold({ route: undefined, until: NOON + DAY, because: "b" });
    for (const now of [NOON + 2 * DAY + 1, NOON + DAY - 1]) {
      assertEquals(await ledger.forget("2029-01-01", now), "refused", "nobody counted a day ago");
    }
    const many = Array.from({ length: 250 }, (_, index) => ({ ...CALLS, client: `${index}` }));
    await write(before, { counts: many, before: NOON, isStopped: true });
    const now = clock.now = Date.parse("2027-02-02");
    await write(on, { counts: [CALLS], before: now, isStopped: true });
    await write(running, { before: now });

    /** Forgets all before a day, and returns how many rows of counts are left after each step. */
    const forget = async (day: string) => {
      const steps: number[] = [];
      while (steps.length < 9) {
        const outcome = await ledger.forget(day, NOON + 2 * DAY);
        steps.push((await rows()).length);
        if (outcome === "done") break;
        assertEquals([outcome, await ledger.started()], ["more", Date.parse(day)]);
      }
      const [sessions, { holds }] = [await ledger.sessions(), await ledger.holds()];
      const ids = [...sessions, ...holds].map(({ id }) => id === hold.id ? "a hold" : id);
      return [steps, ids.toSorted()];
    };
    const all = ["a hold", "before", "on it", "run", "silent"];
    assertEquals(await forget("2027-02-01"), [[251], all]);
    assertEquals(await ledger.started(), Date.parse("2027-02-01"));
    const steps = [251 - MAX_PART_ROWS, 251 - 2 * MAX_PART_ROWS, 1];
    assertEquals(await forget("2027-02-02"), [steps, ["a hold", "on it", "run"]]);
    assertEquals(await rows(), [{ ...ROW, day: "2027-02-02", last: now }]);
    await ledger.forget("2027-02-01", NOON + 2 * DAY); // by a server that retains more
    assertEquals(await ledger.started(), now);
    clock.now = NOON + 2 * DAY;
    await write({ ...running, sequence: 2 }, { before: clock.now });
    assertEquals(await forget("2027-02-03"), [[0, 0, 0], ["run"]]);
  });

  test("forget() retains the days on which clients called three times as long", async ({ database, ledger }) => {
    const days = [-9, -7, -6, -3, 0].map((past) => ({ ...ROW, last: NOON + past * DAY }));
    await addRows(database, [...days, { ...ROW, client: "old", last: NOON - 8 * DAY }]);
    await begin(ledger);
    assertEquals(await ledger.forget("2027-01-31", NOON + 2 * DAY), "done"); // three days before
    const [history, ...others] = await ledger.histories();
    assertEquals([history?.first, history?.days, others.length], ["2027-01-25", 4, 0]);
    assertEquals([await ledger.hasClient("curl"), await ledger.hasClient("old")], [true, false]);
  });
}

/** Of a session that begins now, after no loss. */
const TIMES = { start: NOON, continued: undefined, isClockBehind: false };

/** A session that no ledger has. */
const LOST = { id: "a session that was lost", sequence: 1 };
