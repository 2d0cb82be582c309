/** The suite of every ledger. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Database } from "../../../lib/database/sql/database.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { callerOf } from "../../../lib/usage/record/client_names.ts";
import { Ledger } from "../../../lib/usage/record/ledger.ts";
import { Recorder } from "../../../lib/usage/record/recorder.ts";
import type { Impact, Session, UsageRow } from "../../../lib/usage/record/records.ts";
import { judge } from "../../../lib/usage/verdict/verdict.ts";
import { COUNT, DAY, NOON, PROCESS } from "../../support/counted_call.ts";
import { ledgerAt } from "../../support/ledger_at.ts";
import { addRows, begin } from "../../support/ledger_rows.ts";
import type { Test } from "../../support/permissions.ts";
import { NAMED_USER_AGENTS } from "../../support/user_agents.ts";

const MINUTE = 60_000;
const CALLS = { ...COUNT, client: "curl", release: "8", calls: 3 };
const POLICY = definePolicy({ deprecatedAt: "2027-01-01" });
const ROW: UsageRow = { ...CALLS, day: "2027-02-01", last: NOON };

/** A ledger, and the clock of its database, which begins at noon. */
interface Subject {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly clock: { now: number };
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
      const clock = { now: NOON };
      const ledger = ledgerAt(database, () => clock.now);
      await body({ database, ledger, clock, rows: () => Array.fromAsync(ledger.usage("")) });
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

  test("add() records a part once, and none after the end", async ({ ledger, clock, rows }) => {
    const session = await begin(ledger);
    const part = { counts: [CALLS], at: NOON };
    assertEquals(await ledger.add(part, { ...session, sequence: 1 }), false, "behind");
    assertEquals(await ledger.add(part, { ...session, id: "b" }), false, "missing");
    assertEquals(await ledger.add(part, session), true);
    assertEquals(await ledger.add(part, session), false, "sent again");
    clock.now += 9;
    const last = { counts: [], at: NOON, reported: NOON + 9, isStopped: true };
    assertEquals(await ledger.add(last, session), false, "without rows, too");
    const extended = { ...session, sequence: 1 };
    assertEquals(await ledger.session(session.id), extended, "another part follows");
    assertEquals(await ledger.add(last, extended), true);
    assertEquals(await ledger.add(part, { ...session, sequence: 2 }), false, "ended");
    assertEquals(await rows(), [ROW]);
    const stopped = { ...session, sequence: 2, reported: NOON + 9, ended: "stopped" } as const;
    assertEquals(await ledger.sessions(), [stopped]);
  });

  test("add() moves a report neither back nor past the time", async ({ ledger, clock }) => {
    const [session, other] = [await begin(ledger, "a"), await begin(ledger, "b")];
    const report = async (of: Session, sequence: number, reported: number) => {
      await ledger.add({ counts: [], at: NOON, reported }, { ...of, sequence });
      return (await ledger.session(of.id))?.reported;
    };
    clock.now += 7;
    assertEquals(await report(session, 0, NOON + 8), NOON, "the clock was set back since");
    assertEquals(await report(session, 1, NOON + 5), NOON + 5);
    assertEquals(await report(session, 2, NOON + 4), NOON + 5);
    clock.now = NOON - DAY;
    assertEquals(await report(other, 0, NOON + 6), NOON);
    assertEquals(await report(other, 1, NOON + 5), NOON + 5, "the latest report");
  });

  test("add() reports nothing that a gate asked meanwhile would take for an answer", async ({ ledger, clock }) => {
    const session = await begin(ledger);
    clock.now += 30_000;
    const { now: reported } = await ledger.time(); // then the server takes its counts
    clock.now -= 20_000; // the clock is set back
    const { now: judgedAt } = await ledger.time(); // the gate is asked, just after another call
    await ledger.add({ counts: [], at: reported, reported }, session); // the server is killed
    const policies = { [ROW.route]: POLICY };
    const sessions = (await ledger.sessions()).map((each) => ({ ...each, policies }));
    const [started, time] = [await ledger.started(), await ledger.time()];
    const question = { routes: [ROW.route], from: NOON, trustStops: false, hidden: [] };
    const { state } = judge({ sessions, started, judgedAt, time }, question);
    assertEquals(state, "unknown");
  });

  test("add() records the machine's clock with a report, and forgets a restart", async ({ ledger, clock }) => {
    const [session, open] = [await begin(ledger, "a"), await begin(ledger, "b")];
    const gone = await begin(ledger, "c");
    const stopped = await begin(ledger, "d");
    await ledger.end(["c"], NOON + 2);
    await ledger.add({ counts: [], at: NOON, isStopped: true }, stopped);
    clock.now += 5;
    const here = NOON + DAY; // the machine's clock is a day ahead
    const report = async (sequence: number, reported?: number) => {
      const part = { counts: [], at: NOON, reported, clock: here };
      await ledger.add(reported === undefined ? { counts: [], at: NOON } : part, {
        ...session,
        sequence,
      });
      const { clock, restarted } = await ledger.session("a") ?? {};
      return [clock, restarted];
    };
    assertEquals(await report(0), [NOON, undefined], "no report");
    assertEquals(await report(1, NOON + 6), [NOON, undefined], "past the ledger's time");
    assertEquals(await report(2, NOON + 5), [here, undefined]);
    const [restarted, operator] = [await ledger.restart(NOON + 9), NOON + 9];
    const known = (await ledger.sessions()).map((each) => [each.id, each.clock, each.restarted]);
    assertEquals(known, [
      ["a", operator, restarted],
      [open.id, operator, restarted],
      [gone.id, operator, restarted],
      [stopped.id, NOON, undefined],
    ]);
    assertEquals(await report(3), [operator, restarted], "no report");
    assertEquals(await report(4, NOON + 5), [here, undefined]);
  });

  test("add() records nothing where a restart has set the report back", async ({ ledger, clock }) => {
    const session = await begin(ledger);
    clock.now -= DAY;
    const part = { counts: [CALLS], at: NOON, reported: NOON };
    assertEquals(await ledger.add(part, session), true);
    await ledger.restart(NOON);
    assertEquals(await ledger.add(part, { ...session, sequence: 1 }), false);
    assertEquals((await ledger.session(session.id))?.sequence, 1);
  });

  test("add() records nothing of a part with a malformed row", async ({ ledger, rows }) => {
    const session = await begin(ledger);
    const counts = Array.from({ length: 250 }, (_, index) => ({ ...CALLS, client: `${index}` }));
    const part = { counts, at: NOON, reported: NOON };
    const malformed = { ...part, counts: [...counts, { ...CALLS, impact: "some" as Impact }] };
    for (const _ of [1, 2, 3]) { // more often than there are connections
      await assertRejects(() => ledger.add(malformed, session), StorageError);
      assertEquals([await rows(), await ledger.session(session.id)], [[], session]);
    }
    assertEquals([await ledger.add(part, session), (await rows()).length], [true, 250]);
  });

  test("time() is the clock, or the latest report if later", async ({ database, ledger, clock }) => {
    assertEquals(await ledger.time(), { clock: NOON, now: NOON });
    await begin(ledger);
    clock.now -= 5;
    assertEquals(await ledger.time(), { clock: NOON - 5, now: NOON });
    clock.now += 9;
    assertEquals(await ledger.time(), { clock: NOON + 4, now: NOON + 4 });
    const own = (await new Ledger(database).time()).clock; // on this machine
    assert(Math.abs(own - Date.now()) < MINUTE, `${own} is not the time`);
  });

  test("begin() starts the record once, and if the clock is behind", async ({ ledger, clock }) => {
    assertEquals(await ledger.started(), undefined);
    const latest = NOON + 2 * MINUTE;
    const beginnings: [id: string, clock: number, began: number, started: number][] = [
      ["b", NOON, NOON, NOON],
      ["a", latest, latest, NOON],
      ["c", latest - MINUTE + 1, latest, NOON],
      ["d", latest - MINUTE, latest, latest],
    ];
    for (const [id, now, ...times] of beginnings) {
      clock.now = now;
      assertEquals([(await begin(ledger, id)).began, await ledger.started()], times, id);
    }
    const sessions = (await ledger.sessions()).map(({ id, ended }) => [id, ended]);
    assertEquals(sessions, ["b", "a", "c", "d"].map((id) => [id, undefined]), "all stay open");
  });

  test("begin() lapses a session only if it is as it was left", async ({ ledger, clock }) => {
    const [own, other] = [await begin(ledger, "a"), await begin(ledger, "b")];
    clock.now += DAY;
    const lapse = (lapsed: Session) =>
      ledger.begin({ ...own, id: crypto.randomUUID(), sequence: 1 }, { lapsed });
    assertEquals(await lapse({ ...own, sequence: 1 }), undefined);
    assertEquals(await lapse({ ...own, id: "missing" }), undefined);
    assertEquals(await ledger.sessions(), [own, other]);
    assertEquals(await lapse(own), NOON + DAY);
    assertEquals(await lapse(own), undefined, "once");
    const [first, second, third] = await ledger.sessions();
    assertEquals([first, second], [{ ...own, ended: "lapsed" }, other]);
    assertEquals([third?.sequence, third?.ended], [1, undefined], "as it was given");
    assertEquals([(await ledger.sessions()).length, await ledger.started()], [3, NOON]);
  });

  test("begin() after a loss restarts the record only", async ({ ledger, clock, rows }) => {
    const [own, other] = [await begin(ledger, "a"), await begin(ledger, "b")];
    await addRows(ledger, [ROW]);
    for (const id of ["a", "missing"]) {
      clock.now += DAY;
      const next = await begin(ledger, undefined, { lost: { ...own, id, sequence: 7 } });
      assertEquals([next.began, await ledger.started()], [clock.now, clock.now]);
      assertEquals(await ledger.session("a"), { ...own, ended: "lapsed" });
      assertEquals(await ledger.session("b"), other, "nobody else's session ends");
    }
    assertEquals(await rows(), [ROW], "calls stay");
  });

  test("a process that did not count a route, lapsed and was killed leaves a doubt", async ({ ledger, clock }) => {
    const [other, counted] = ["/video/:token", ROW.route];
    const routes = { [counted]: POLICY };
    const recorder = new Recorder({
      ledger,
      policies: routes,
      process: PROCESS,
      retainDays: 30,
      clock: () => clock.now,
      lifetime: () => 0,
      log() {},
    });
    const covering = await begin(ledger);
    await recorder.start();
    const first = recorder.session;
    clock.now += 60 * MINUTE; // it is cut off, answers calls to the other route, and sleeps
    ledger.add = () => Promise.reject(new StorageError("sqlite", "down")); // it is killed
    await recorder.stop();
    await ledger.end([recorder.session], clock.now);
    const endOf = async (id: string) => (await ledger.session(id))?.ended;
    assertEquals([await endOf(first), await endOf(recorder.session)], ["lapsed", "gone"]);
    const sessions = (await ledger.sessions()).map((each) =>
      each.id === covering.id
        ? { ...each, policies: { ...routes, [other]: POLICY }, reported: clock.now + 1 }
        : each
    );
    const time = await ledger.time();
    const evidence = { sessions, started: await ledger.started(), judgedAt: clock.now, time };
    const verdicts = [counted, other].map((route) => {
      const question = { routes: [route], from: NOON, trustStops: false, hidden: [] };
      return judge(evidence, question).state;
    });
    assertEquals(verdicts, ["clear", "unknown"]);
  });

  test("begin() registers a session once, however often it is sent", async ({ ledger, clock }) => {
    const lapsed = await begin(ledger, "a");
    await begin(ledger, "b", { lapsed });
    clock.now += 5;
    const again = await begin(ledger, "b");
    assertEquals(again.began, NOON + 5);
    assertEquals(await ledger.sessions(), [{ ...lapsed, ended: "lapsed" }, again]);
  });

  test("end() ends open sessions as gone, by a time", async ({ ledger, clock }) => {
    const silent = await begin(ledger, "a");
    const lapsed = await begin(ledger, "b");
    const open = await begin(ledger, "c", { lapsed });
    clock.now += DAY;
    await ledger.end(["a", "b", "missing"], NOON + 5, 3);
    await ledger.end(["a"], NOON + 7); // too late
    const ended = [{ ...silent, ended: "gone", endedBy: NOON + 5, lead: 3 }, {
      ...lapsed,
      ended: "lapsed",
    }] as const;
    assertEquals(await ledger.sessions(), [...ended, open]);
  });

  test("restart() brings the future to now, and deletes nothing", async ({ ledger, clock, rows }) => {
    const before = await begin(ledger, "a");
    clock.now = NOON + 3 * DAY;
    const after = await begin(ledger, "b");
    const later = { ...ROW, client: "later", last: NOON + DAY };
    const today = { ...ROW, client: "today", last: NOON + 5 };
    const merged = [-DAY, 0, DAY, 2 * DAY].map((past) => ({ ...ROW, last: NOON + past }));
    await addRows(ledger, [...merged, later, today]);
    clock.now = NOON + 1;
    assertEquals(await ledger.restart(NOON), NOON + 1);
    assertEquals([await ledger.started(), (await ledger.time()).now], [NOON + 1, NOON + 1]);
    const restarted = NOON + 1;
    assertEquals(await ledger.session("a"), { ...before, restarted });
    const moved = { ...after, began: restarted, reported: restarted, restarted };
    assertEquals(await ledger.session("b"), moved, "still open");
    assertEquals(await rows(), [
      { ...ROW, day: "2027-01-31", last: NOON - DAY },
      { ...ROW, calls: 9, last: NOON + 1 },
      { ...later, last: NOON + 1 },
      { ...today, last: NOON + 1 },
    ]);
  });

  test("forget() removes days, and sessions that ended before", async ({ ledger, clock, rows }) => {
    const [before, on] = [await begin(ledger, "before"), await begin(ledger, "on it")];
    await begin(ledger, "open");
    for (const now of [NOON + 2 * DAY + 1, NOON + DAY - 1]) {
      assertEquals(await ledger.forget("2029-01-01", now), false, "nobody counted a day ago");
    }
    const many = Array.from({ length: 501 }, (_, index) => ({ ...CALLS, client: `${index}` }));
    await ledger.add({ counts: many, at: NOON, reported: NOON, isStopped: true }, before);
    const now = clock.now = Date.parse("2027-02-02");
    await ledger.add({ counts: [CALLS], at: now, reported: now, isStopped: true }, on);
    const later = NOON + 2 * DAY;
    assertEquals(await ledger.forget("2027-02-01", later), true);
    assertEquals([await ledger.started(), (await rows()).length], [NOON, 502]);
    assertEquals(await ledger.forget("2027-02-02", later), true);
    assertEquals(await rows(), [{ ...ROW, day: "2027-02-02", last: now }]);
    assertEquals((await ledger.sessions()).map(({ id }) => id), ["on it", "open"]);
    assertEquals(await ledger.started(), now);
    await ledger.forget("2027-02-01", later); // by a server that retains more
    assertEquals(await ledger.started(), now);
  });

  test("forget() keeps a session whose process may have run on into the days that stay", async ({ ledger, clock }) => {
    const sessions: [id: string, clock: number, endedBy: number, lead?: number][] = [
      ["dead", NOON, NOON + 9],
      ["cut off", NOON, NOON + DAY],
      ["cut off on a machine whose clock is behind", NOON - DAY, NOON + 9],
      ["cut off while the database's clock jumped", NOON, NOON + 9, DAY],
    ];
    for (const [id, clock, endedBy, lead] of sessions) {
      const session = { id, policies: { [ROW.route]: POLICY }, process: PROCESS, sequence: 0 };
      await ledger.begin({ ...session, clock });
      await ledger.end([id], endedBy, lead);
    }
    const other = await begin(ledger, "other");
    const now = clock.now = NOON + 2 * DAY;
    await ledger.add({ counts: [], at: now, reported: now }, other);
    const kept = async (day: string) => {
      assert(await ledger.forget(day, now));
      return (await ledger.sessions()).map(({ id }) => id);
    };
    const cutOff = sessions.slice(1).map(([id]) => id);
    assertEquals(await kept("2027-02-02"), [...cutOff, "other"]);
    const evidence = {
      sessions: (await ledger.sessions()).filter(({ id }) => id !== "other"),
      started: await ledger.started(),
      judgedAt: now,
      time: await ledger.time(),
    };
    const from = Date.parse("2027-02-02");
    const verdict = judge(evidence, { routes: [ROW.route], from, trustStops: true, hidden: [] });
    const doubts = verdict.state === "unknown" ? verdict.doubts : [];
    assertEquals(doubts.map(({ reason }) => reason), ["cut off", "cut off", "cut off"]);
    assertEquals(await kept("2027-02-03"), ["other"]);
  });
}
