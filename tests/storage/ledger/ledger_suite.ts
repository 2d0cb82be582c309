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
const ROW: UsageRow = { ...CALL, client: "curl", calls: 3, first: NOON, last: NOON + 5 };

function heartbeat(
  server: string,
  [from, until]: [number, number],
  end?: "stopped" | "gone",
): Heartbeat {
  return { server, policies: {}, from, until, ...end && { end } };
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

  test("recordHeartbeat() replaces a server's heartbeat that began at the same time, and keeps others", async (ledger) => {
    const first = heartbeat("a", [NOON, NOON]);
    const second = heartbeat("a", [NOON + 9, NOON + 10]);
    const other = heartbeat("b", [NOON + 1, NOON + 4], "stopped");
    const before = heartbeat("c", [NOON - 1, NOON + 4], "gone");
    for (const heartbeat of [second, first, other, before]) await ledger.recordHeartbeat(heartbeat);
    await ledger.recordHeartbeat({ ...first, until: NOON + 5, end: "stopped" });
    await ledger.recordHeartbeat({ ...first, until: NOON + 7 }); // it is back
    assertEquals(await ledger.heartbeats(), [before, { ...first, until: NOON + 7 }, other, second]);
  });

  test("add() extends a heartbeat only as it was written, and without an end", async (ledger) => {
    const first = heartbeat("a", [NOON, NOON + 5]);
    const other = heartbeat("a", [NOON + 9, NOON + 9]);
    for (const heartbeat of [first, other]) await ledger.recordHeartbeat(heartbeat);
    const extend = (until: number, known: number, end?: "stopped", server = "a") =>
      ledger.add([], () => {}, { ...heartbeat(server, [NOON, until], end), known });
    assertEquals(await extend(NOON + 8, NOON + 6), false, "restored");
    assertEquals(await extend(NOON + 8, NOON + 5), true);
    assertEquals(await extend(NOON + 9, NOON + 5), true, "the outcome of the last got lost");
    assertEquals(await extend(NOON + 9, NOON + 9, "stopped"), true);
    assertEquals(await extend(NOON + 10, NOON + 9), false, "ended");
    assertEquals(await extend(NOON + 5, 0, undefined, "b"), false);
    assertEquals(await ledger.heartbeats(), [{ ...first, until: NOON + 9, end: "stopped" }, other]);
  });

  test("add() extends a heartbeat with the last rows, or not at all", async (ledger) => {
    await ledger.recordHeartbeat(heartbeat("a", [NOON, NOON]));
    const rows = Array.from({ length: 250 }, (_, index) => ({ ...ROW, client: `${index}` }));
    const extended = heartbeat("a", [NOON, NOON + 5]);
    assertEquals(await ledger.add(rows, () => {}, { ...extended, known: NOON }), true);
    assertEquals(await ledger.heartbeats(), [extended]);
    assertEquals(await ledger.add([ROW], () => {}, { ...extended, known: NOON + 6 }), false);
    assertEquals((await rowsOf(ledger)).length, 251);
    const later = { ...extended, until: NOON + 9, known: NOON };
    const adding = () => ledger.add([{ ...ROW, client: "" }], () => {}, later);
    await assertRejects(adding, StorageError);
    assertEquals(await ledger.heartbeats(), [extended]);
  });

  test("time() returns the database's time and the latest heartbeat", async (ledger) => {
    const before = Date.now();
    const { now, latest } = await ledger.time();
    assert(before - 1 <= now && now <= Date.now() + 1, `${now} is not the time`);
    assertEquals(latest, 0);
    await ledger.recordHeartbeat(heartbeat("a", [5, 7], "stopped"));
    await ledger.recordHeartbeat(heartbeat("b", [4, 9], "gone"));
    assertEquals((await ledger.time()).latest, 7);
  });

  test("forget() removes nothing unless somebody counted a day ago", async (ledger) => {
    await ledger.add([ROW], () => {});
    const later = NOON + 2 * 365 * DAY;
    const day = "2029-01-01";
    await ledger.recordHeartbeat(heartbeat("a", [NOON, NOON]));
    await ledger.recordHeartbeat(heartbeat("b", [later - 7_000, later]));
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
    await ledger.recordHeartbeat(heartbeat("a", [0, NOON]));
    await ledger.forget("2027-01-02", NOON);
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
      heartbeat("slept", [at(-18), at(-17)]),
      heartbeat("back", [at(-17.5), at(-17)]),
      heartbeat("silent", [at(-17), at(-16)]),
      heartbeat("slept", [at(-16), at(0)]),
      heartbeat("edge", [at(-15), Date.parse("2027-02-01")], "stopped"),
      heartbeat("whole", [at(-14), at(1)], "stopped"),
      heartbeat("back", [at(0.5), at(1)], "stopped"), // its silence reaches the day
    ];
    for (const heartbeat of heartbeats) await ledger.recordHeartbeat(heartbeat);
    await ledger.forget("2027-02-01", NOON);
    assertEquals(await ledger.heartbeats(), heartbeats.slice(2));
  });
}

async function rowsOf(ledger: Ledger): Promise<UsageRow[]> {
  return await Array.fromAsync(ledger.usage(""));
}
