/** The suite of every ledger. */

import { ROW as CALL } from "../../support/counted_call.ts";
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Heartbeat, ReleaseRow, UsageRow } from "../../../lib/storage/ledger/records.ts";
import type { Ledger } from "../../../lib/storage/ledger/ledger.ts";
import { RejectedError } from "../../../lib/storage/errors.ts";
import { callerOf } from "../../../lib/usage/client_names.ts";
import { addRows } from "../../support/ledger_rows.ts";
import { NAMED_USER_AGENTS } from "../../support/user_agents.ts";
import type { Test } from "../../support/permissions.ts";

/** An empty ledger under test. */
export interface LedgerSubject extends AsyncDisposable {
  readonly ledger: Ledger;
}

const NOON = Date.parse("2027-02-01T12:00:00Z");
const DAY = 86_400_000;
const ROW: UsageRow = { ...CALL, client: "curl", calls: 3, first: NOON, last: NOON + 5 };
const RELEASE: ReleaseRow = {
  ...{ day: "2027-02-01", client: "app Overcast", release: "3.0.1" },
  ...{ calls: 3, last: NOON },
};

function heartbeat(
  server: string,
  [from, until]: [number, number],
  end?: "stopped" | "gone",
): Heartbeat {
  return { server, policies: {}, from, until, sequence: 0, ...end && { end } };
}

/** Runs the suite on a driver; every test opens its own ledger. */
export function testLedger(
  name: string,
  open: () => Promise<LedgerSubject>,
  register: Test = Deno.test,
): void {
  const test = (what: string, body: (ledger: Ledger) => Promise<void>) =>
    register(`${name} ${what}`, async () => {
      await using subject = await open();
      await body(subject.ledger);
    });

  test("add() merges rows with the same key, and keeps others apart", async (ledger) => {
    await addRows(ledger, [ROW]);
    await addRows(ledger, [{ ...ROW, calls: 2, first: NOON - 9, last: NOON - 9 }]);
    assertEquals(await rowsOf(ledger), [{ ...ROW, calls: 5, first: NOON - 9 }]);
    const others: Partial<UsageRow>[] = [
      { day: "2027-02-02" },
      { route: "/video/:token" },
      { method: "GET" },
      { phase: "brownout" },
      { status: "4xx" },
      { impact: "none" },
      { client: "(no User-Agent)" },
    ];
    await addRows(ledger, others.map((other) => ({ ...ROW, ...other })));
    const rows = await rowsOf(ledger);
    assertEquals(rows.length, 8);
    for (const other of others) {
      assert(rows.some((row) => JSON.stringify(row) === JSON.stringify({ ...ROW, ...other })));
    }
  });

  test("add() accepts any number of rows, and rows of a clock that was set back", async (ledger) => {
    const rows = Array.from({ length: 1001 }, (_, index) => ({
      ...{ ...ROW, route: "r".repeat(64), method: "m".repeat(64), status: "s".repeat(64) },
      client: String(index).padStart(64, "c"),
    }));
    for (const round of [1, 2]) {
      await addRows(ledger, rows);
      const kept = await rowsOf(ledger);
      assertEquals(kept.length, 1001);
      assert(kept.every(({ calls, first }) => calls === 3 * round && first === NOON));
    }
    await addRows(ledger, [{ ...ROW, first: NOON, last: NOON - 5 }]);
    assertEquals((await rowsOf(ledger)).find(({ client }) => client === ROW.client), {
      ...ROW,
      first: NOON - 5,
      last: NOON,
    });
  });

  test("add() records every name that a client can have, as it is", async (ledger) => {
    const named = NAMED_USER_AGENTS.map(([, userAgent]) =>
      callerOf(new Headers({ "User-Agent": userAgent }), undefined).name
    );
    const ids = ["!", "~".repeat(64), "'; DROP TABLE usage; --"].map((id) =>
      callerOf(new Headers({ "X-Id": id }), "x-id").name
    );
    const names = [...new Set([...named, ...ids])].sort();
    assert(names.includes("app 播客") && names.includes("id !"), "the table has hard names");
    await addRows(ledger, names.map((client) => ({ ...ROW, client })));
    const recorded = (await rowsOf(ledger)).map(({ client }) => client);
    assertEquals(recorded.sort(), names);
  });

  test("add() merges releases with the same key, beside the rows of usage", async (ledger) => {
    await addRows(ledger, [ROW, RELEASE, { ...RELEASE, release: "2.9.4~1" }]);
    await addRows(ledger, [{ ...RELEASE, calls: 2, last: NOON + 9 }, ROW]);
    await addRows(ledger, [{ ...RELEASE, calls: 1, last: NOON - 9 }]);
    await addRows(ledger, [{ ...RELEASE, client: "app 播客" }, { ...RELEASE, day: "2027-02-02" }]);
    assertEquals(await Array.fromAsync(ledger.releases("")), [
      { ...RELEASE, release: "2.9.4~1" },
      { ...RELEASE, calls: 6, last: NOON + 9 },
      { ...RELEASE, client: "app 播客" },
      { ...RELEASE, day: "2027-02-02" },
    ]);
    assertEquals(await Array.fromAsync(ledger.releases("2027-02-02"), ({ day }) => day), [
      "2027-02-02",
    ]);
    assertEquals(await rowsOf(ledger), [{ ...ROW, calls: 6 }]);
    const many = Array.from({ length: 1_001 }, (_, index) => ({ ...RELEASE, release: `${index}` }));
    await addRows(ledger, many);
    assertEquals((await Array.fromAsync(ledger.releases(""))).length, 1_005);
  });

  test("usage() lists the rows from a day on, ordered by day", async (ledger) => {
    const days = ["2027-02-03", "2026-12-31", "2027-02-01", "2027-02-02"];
    await addRows(ledger, days.map((day) => ({ ...ROW, day })));
    const from = async (day: string) => await Array.fromAsync(ledger.usage(day), ({ day }) => day);
    assertEquals(await from("2027-02-02"), ["2027-02-02", "2027-02-03"]);
    assertEquals(await from(""), days.toSorted());
    assertEquals(await from("2027-02-04"), []);
  });

  test("add() records each part once, however often it is sent", async (ledger) => {
    const own = heartbeat("a", [NOON, NOON + 5]);
    await ledger.declare([own]);
    const part = { rows: [ROW], until: NOON + 8 };
    assertEquals(await ledger.add(part, { ...own, sequence: 1 }), false, "behind");
    assertEquals(await ledger.add(part, { ...own, from: NOON - 1 }), false, "no such heartbeat");
    assertEquals(await ledger.add(part, { ...own, server: "b" }), false);
    assertEquals(await ledger.add(part, own), true);
    assertEquals(await ledger.add(part, own), false, "sent again");
    assertEquals(await ledger.heartbeats(), [{ ...own, until: NOON + 8, sequence: 1 }]);
    const empty = { rows: [], until: NOON + 9, end: "stopped" } as const;
    assertEquals(await ledger.add(empty, own), false, "without rows, too");
    assertEquals(await ledger.add(empty, { ...own, sequence: 1 }), true);
    assertEquals(await ledger.add({ ...part, until: NOON + 10 }, { ...own, sequence: 2 }), false);
    assertEquals(await rowsOf(ledger), [ROW]);
    const ended = { ...heartbeat("a", [NOON, NOON + 9], "stopped"), sequence: 2 };
    assertEquals(await ledger.heartbeats(), [ended]);
  });

  test("add() records nothing of a part with a row that the database rejects", async (ledger) => {
    const own = heartbeat("a", [NOON, NOON]);
    await ledger.declare([own]);
    const rows = Array.from({ length: 250 }, (_, index) => ({ ...ROW, client: `${index}` }));
    const part = { rows: [...rows, RELEASE, { ...ROW, day: "today" }], until: NOON + 5 };
    await assertRejects(() => ledger.add(part, own), RejectedError);
    assertEquals(await rowsOf(ledger), []);
    assertEquals(await Array.fromAsync(ledger.releases("")), []);
    assertEquals(await ledger.heartbeats(), [own]);
    assertEquals(await ledger.add({ rows, until: NOON + 5 }, own), true);
    assertEquals((await rowsOf(ledger)).length, 250);
  });

  test("declare() ends heartbeats or takes their ends off, but moves none; all or nothing", async (ledger) => {
    const silent = heartbeat("a", [NOON, NOON + 5]);
    const stopped = heartbeat("b", [NOON + 1, NOON + 9], "stopped");
    const other = heartbeat("c", [NOON + 2, NOON + 9]);
    await ledger.declare([other, stopped, silent]);
    assertEquals(await ledger.heartbeats(), [silent, stopped, other]);
    const gone: Heartbeat = { ...silent, end: "gone", declaredAt: NOON + 99 };
    const open = { ...stopped, end: undefined };
    const next = heartbeat("d", [NOON + 3, NOON + 3]);
    await assertRejects(() => ledger.declare([other], [gone, open]), RejectedError);
    assertEquals(await ledger.heartbeats(), [silent, stopped, other]);
    await ledger.declare([next], [{ ...gone, until: NOON + 4 }, open]);
    const { end: _, ...opened } = stopped;
    assertEquals(await ledger.heartbeats(), [gone, opened, other, next]);
  });

  test("time() returns the database's time and the latest heartbeat", async (ledger) => {
    const before = Date.now();
    const { now, latest } = await ledger.time();
    assert(before - 1 <= now && now <= Date.now() + 1, `${now} is not the time`);
    assertEquals(latest, 0);
    await ledger.declare([heartbeat("a", [5, 7], "stopped")]);
    await ledger.declare([heartbeat("b", [4, 9], "gone")]);
    assertEquals((await ledger.time()).latest, 7);
  });

  test("forget() removes nothing unless somebody counted a day ago", async (ledger) => {
    await addRows(ledger, [ROW]);
    const later = NOON + 2 * 365 * DAY;
    const day = "2029-01-01";
    await ledger.declare([heartbeat("a", [NOON, NOON])]);
    await ledger.declare([heartbeat("b", [later - 7_000, later])]);
    assertEquals(await ledger.forget(day, later), false);
    assertEquals((await rowsOf(ledger)).length, 1);
    assertEquals(await ledger.keptFrom(), undefined);
    assertEquals(await ledger.forget("2027-01-01", NOON + DAY), true);
    assertEquals(await ledger.keptFrom(), undefined, "there was nothing to remove");
  });

  test("forget() removes days, and records the first day retained", async (ledger) => {
    assertEquals(await ledger.keptFrom(), undefined);
    const days = ["2026-12-31", "2027-01-01", "2027-01-02", "2027-02-01"];
    await addRows(ledger, days.map((day) => ({ ...ROW, day })));
    const clients = Array.from({ length: 500 }, (_, index) => `client-${index}`);
    await addRows(ledger, clients.map((client) => ({ ...ROW, day: "2027-01-01", client })));
    const releases = clients.map((release) => ({ ...RELEASE, day: "2027-01-01", release }));
    await addRows(ledger, [...releases, RELEASE]);
    await ledger.declare([heartbeat("a", [0, NOON])]);
    await ledger.forget("2027-01-02", NOON);
    assertEquals(await Array.fromAsync(ledger.releases("")), [RELEASE]);
    assertEquals((await rowsOf(ledger)).map(({ day }) => day), ["2027-01-02", "2027-02-01"]);
    assertEquals(await ledger.keptFrom(), "2027-01-02");
    await ledger.forget("2026-12-01", NOON); // by a server that retains more
    assertEquals(await ledger.keptFrom(), "2027-01-02");
  });

  test("forget() retains every server that may still be running", async (ledger) => {
    const at = (days: number) => NOON + days * DAY;
    const heartbeats: Heartbeat[] = [
      heartbeat("ended", [at(-20), at(-19)], "stopped"),
      heartbeat("gone", [at(-19), at(-18)], "gone"),
      heartbeat("slept", [at(-18), at(-17)]), // it was back before the day
      heartbeat("back", [at(-17.5), at(-17)]),
      heartbeat("silent", [at(-17), at(-16)]),
      heartbeat("slept", [at(-16), at(0)]),
      heartbeat("edge", [at(-15), Date.parse("2027-02-01")], "stopped"),
      heartbeat("whole", [at(-14), at(1)], "stopped"),
      heartbeat("back", [at(0.5), at(1)], "stopped"), // its silence reaches the day
    ];
    await ledger.declare(heartbeats);
    await ledger.forget("2027-02-01", NOON);
    assertEquals(await ledger.heartbeats(), heartbeats.slice(3));
  });
}

async function rowsOf(ledger: Ledger): Promise<UsageRow[]> {
  return await Array.fromAsync(ledger.usage(""));
}
