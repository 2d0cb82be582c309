/** The suite of every ledger. */

import { ROW as CALL } from "../../support/counted_call.ts";
import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Heartbeat, UsageRow } from "../../../lib/storage/ledger/ledger.ts";
import type { Ledger } from "../../../lib/storage/ledger/sql_ledger.ts";
import { StorageError } from "../../../lib/storage/errors.ts";
import type { Test } from "../../support/permissions.ts";

/** An empty ledger under test. */
export interface LedgerSubject extends AsyncDisposable {
  readonly ledger: Ledger;
}

const NOON = Date.parse("2027-02-01T12:00:00Z");
const DAY = 86_400_000;
const ROW: UsageRow = {
  ...CALL,
  client: "curl",
  calls: 3,
  first: NOON,
  last: NOON + 5,
};

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
    await ledger.add([ROW], () => {});
    await ledger.add([{ ...ROW, calls: 2, first: NOON - 9, last: NOON - 9 }], () => {});
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
    await ledger.add(others.map((other) => ({ ...ROW, ...other })), () => {});
    const rows = await rowsOf(ledger);
    assertEquals(rows.length, 8);
    for (const other of others) {
      assert(rows.some((row) => JSON.stringify(row) === JSON.stringify({ ...ROW, ...other })));
    }
  });

  test("add() accepts any number of rows, and reports each part once it is committed", async (ledger) => {
    const rows = Array.from({ length: 1001 }, (_, index) => ({
      ...{ ...ROW, route: "r".repeat(64), method: "m".repeat(64), status: "s".repeat(64) },
      client: String(index).padStart(64, "c"),
    }));
    for (const round of [1, 2]) {
      const added: UsageRow[] = [];
      await ledger.add(rows, (part) => added.push(...part));
      assertEquals(added, rows);
      const kept = await rowsOf(ledger);
      assertEquals(kept.length, 1001);
      assert(kept.every(({ calls, first }) => calls === 3 * round && first === NOON));
    }
    await ledger.add([], () => {});
  });

  test("add() accepts rows of a clock that was set back", async (ledger) => {
    await ledger.add([{ ...ROW, first: NOON, last: NOON - 5 }], () => {});
    assertEquals(await rowsOf(ledger), [{ ...ROW, first: NOON - 5, last: NOON }]);
  });

  test("usage() lists the rows from a day on, ordered by day", async (ledger) => {
    const days = ["2027-02-03", "2026-12-31", "2027-02-01", "2027-02-02"];
    await ledger.add(days.map((day) => ({ ...ROW, day })), () => {});
    const from = async (day: string) => await Array.fromAsync(ledger.usage(day), ({ day }) => day);
    assertEquals(await from("2027-02-02"), ["2027-02-02", "2027-02-03"]);
    assertEquals(await from(""), days.toSorted());
    assertEquals(await from("2027-02-04"), []);
  });

  test("recordHeartbeat() replaces a server's heartbeat of the same beginning, and keeps others", async (ledger) => {
    const first: Heartbeat = { server: "a", policies: {}, from: NOON, until: NOON };
    const second: Heartbeat = { server: "a", policies: {}, from: NOON + 9, until: NOON + 10 };
    const other: Heartbeat = {
      server: "b",
      policies: {},
      from: NOON + 1,
      until: NOON + 4,
      end: "stopped",
    };
    const before: Heartbeat = {
      server: "c",
      policies: {},
      from: NOON - 1,
      until: NOON + 4,
      end: "gone",
    };
    for (const heartbeat of [second, first, other, before]) await ledger.recordHeartbeat(heartbeat);
    await ledger.recordHeartbeat({ ...first, until: NOON + 5, end: "stopped" });
    await ledger.recordHeartbeat({ ...first, until: NOON + 7 }); // it is back
    assertEquals(await ledger.heartbeats(), [before, { ...first, until: NOON + 7 }, other, second]);
  });

  test("extendHeartbeat() replaces a heartbeat only as it was written, and without an end", async (ledger) => {
    const first: Heartbeat = { server: "a", policies: {}, from: NOON, until: NOON + 5 };
    const other: Heartbeat = { server: "a", policies: {}, from: NOON + 9, until: NOON + 9 };
    for (const heartbeat of [first, other]) await ledger.recordHeartbeat(heartbeat);
    const extend = (until: number, known: number, end?: "stopped") =>
      ledger.extendHeartbeat({ ...first, until, known, ...end && { end } });
    assertEquals(await extend(NOON + 8, NOON + 6), false, "restored");
    assertEquals(await extend(NOON + 8, NOON + 5), true);
    assertEquals(await extend(NOON + 9, NOON + 5), true, "the outcome of the last got lost");
    assertEquals(await extend(NOON + 9, NOON + 9, "stopped"), true);
    assertEquals(await extend(NOON + 10, NOON + 9), false, "ended");
    assertEquals(await ledger.extendHeartbeat({ ...first, server: "b", known: 0 }), false);
    assertEquals(await ledger.heartbeats(), [{ ...first, until: NOON + 9, end: "stopped" }, other]);
  });

  test("add() extends a heartbeat with the last rows, or not at all", async (ledger) => {
    const heartbeat: Heartbeat = { server: "a", policies: {}, from: NOON, until: NOON };
    await ledger.recordHeartbeat(heartbeat);
    const rows = Array.from({ length: 250 }, (_, index) => ({ ...ROW, client: `${index}` }));
    const extension = { ...heartbeat, until: NOON + 5, known: NOON };
    assertEquals(await ledger.add(rows, () => {}, extension), true);
    assertEquals(await ledger.heartbeats(), [{ ...heartbeat, until: NOON + 5 }]);
    assertEquals(await ledger.add([ROW], () => {}, { ...extension, known: NOON + 6 }), false);
    assertEquals((await rowsOf(ledger)).length, 251);
    const malformed = { ...ROW, client: "" };
    const until = NOON + 9;
    await assertRejects(
      () => ledger.add([malformed], () => {}, { ...extension, until }),
      StorageError,
    );
    assertEquals(await ledger.heartbeats(), [{ ...heartbeat, until: NOON + 5 }]);
  });

  test("time() returns that of the database, and of the latest heartbeat", async (ledger) => {
    const before = Date.now();
    const { now, latest } = await ledger.time();
    assert(before - 1 <= now && now <= Date.now() + 1, `${now} is not the time`);
    assertEquals(latest, 0);
    await ledger.recordHeartbeat({ server: "a", policies: {}, from: 5, until: 7, end: "stopped" });
    await ledger.recordHeartbeat({ server: "b", policies: {}, from: 4, until: 9, end: "gone" });
    assertEquals((await ledger.time()).latest, 7);
  });

  test("forget() removes nothing unless somebody counted a day ago", async (ledger) => {
    await ledger.add([ROW], () => {});
    const later = NOON + 2 * 365 * DAY;
    const day = "2029-01-01";
    await ledger.recordHeartbeat({ server: "a", policies: {}, from: NOON, until: NOON });
    await ledger.recordHeartbeat({ server: "b", policies: {}, from: later - 7_000, until: later });
    assertEquals(await ledger.forget(day, later), false);
    assertEquals((await rowsOf(ledger)).length, 1);
    assertEquals(await ledger.keptFrom(), undefined);
    assertEquals(await ledger.forget("2027-01-01", NOON + DAY), true);
    assertEquals(await ledger.keptFrom(), undefined, "there was nothing to remove");
  });

  test("forget() removes days, and records the first day retained", async (ledger) => {
    assertEquals(await ledger.keptFrom(), undefined);
    const days = ["2026-12-31", "2027-01-01", "2027-01-02", "2027-02-01"];
    await ledger.add(days.map((day) => ({ ...ROW, day })), () => {});
    const clients = Array.from({ length: 500 }, (_, index) => `client-${index}`);
    await ledger.add(clients.map((client) => ({ ...ROW, day: "2027-01-01", client })), () => {});
    await ledger.recordHeartbeat({ server: "a", policies: {}, from: 0, until: NOON });
    await ledger.forget("2027-01-02", NOON);
    assertEquals((await rowsOf(ledger)).map(({ day }) => day), ["2027-01-02", "2027-02-01"]);
    assertEquals(await ledger.keptFrom(), "2027-01-02");
    await ledger.forget("2026-12-01", NOON); // by a server that retains more
    assertEquals(await ledger.keptFrom(), "2027-01-02");
  });

  test("forget() retains every server that may still be running", async (ledger) => {
    const at = (days: number) => NOON + days * DAY;
    const heartbeats: Heartbeat[] = [
      { server: "ended", policies: {}, from: at(-20), until: at(-19), end: "stopped" },
      { server: "gone", policies: {}, from: at(-19), until: at(-18), end: "gone" },
      { server: "slept", policies: {}, from: at(-18), until: at(-17) },
      { server: "back", policies: {}, from: at(-17.5), until: at(-17) },
      { server: "silent", policies: {}, from: at(-17), until: at(-16) },
      { server: "slept", policies: {}, from: at(-16), until: at(0) },
      {
        server: "edge",
        policies: {},
        from: at(-15),
        until: Date.parse("2027-02-01"),
        end: "stopped",
      },
      { server: "whole", policies: {}, from: at(-14), until: at(1), end: "stopped" },
      { server: "back", policies: {}, from: at(0.5), until: at(1), end: "stopped" }, // its silence reaches the day
    ];
    for (const heartbeat of heartbeats) await ledger.recordHeartbeat(heartbeat);
    await ledger.forget("2027-02-01", NOON);
    assertEquals(await ledger.heartbeats(), heartbeats.slice(2));
  });
}

async function rowsOf(ledger: Ledger): Promise<UsageRow[]> {
  return await Array.fromAsync(ledger.usage(""));
}
