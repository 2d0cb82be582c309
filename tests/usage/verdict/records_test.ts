/** Several records make one verdict. */

import { assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import type { Session } from "../../../lib/usage/record/records.ts";
import { gateText, usageJson } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  AUDIO as ROUTE,
  before,
  HOUR,
  MINUTE,
  NOW,
  POLICY,
  report,
  row,
  running,
  session,
  stopped,
} from "../../support/usage_report.ts";

const [NEW, OLD] = ["postgres://db/new", "sqlite:old"] as const;
type Options = Parameters<typeof report>[2];
type Record = NonNullable<NonNullable<Options>["also"]>[number];
const old = (sessions: readonly Session[], more: Partial<Record> = {}): Record => {
  return { name: OLD, sessions, ...more };
};
/** The program's own record after a move, and that of another region. */
const [MOVED, REGION] = [[running(50)], [running(900, { id: "b" })]];
const ON_DEMAND = { onDemand: true } as const;
const WITHOUT = { id: "b", policies: { "/v2": POLICY } };

/** The sessions of the program's own record, another record, and the verdict with its gaps and causes. */
const ROWS: readonly (readonly [
  what: string,
  sessions: readonly Session[],
  also: Record,
  verdict: string,
  own?: Options,
])[] = [
  ["a move", MOVED, old([stopped(1000, 50)]), "announced"],
  ["one that takes an hour", MOVED, old([stopped(1000, 51)]), "announced: stop 51 to 50"],
  ["one that takes a day", MOVED, old([stopped(1000, 74)]), "unknown: stop 74 to 50, gaps"],
  ["one of processes on demand", MOVED, old([stopped(1000, 74, ON_DEMAND)]), "announced"],
  ["one that kept too little", MOVED, old([stopped(99, 50)]), "unknown: too young"],
  [
    "a copy, whose start moved",
    MOVED,
    old([stopped(1000, 50)], { started: before(99) }),
    "unknown: too young",
  ],
  [
    "a record whose start moved behind another's",
    [running(1000)],
    old([stopped(900, 50)], { started: before(60) }),
    "announced",
  ],
  ["the same, in the program's own", [running(1000)], old([stopped(900, 50)]), "announced", {
    started: before(60),
  }],
  ["two regions", ALWAYS, old(REGION), "announced"],
  ["of which one stopped", ALWAYS, old([stopped(900, 8)]), "announced"],
  ["of which one fell silent", ALWAYS, old([session(900, 8, { id: "b" })]), "announced: silent 8"],
  [
    "of which one leaves out a route",
    ALWAYS,
    old([running(9, WITHOUT)]),
    "unknown: not counted 9 to 0, not counted, gaps",
  ],
  [
    "of which one lost some hours",
    ALWAYS,
    old([running(9, { id: "b", lost: before(12) })]),
    "announced: lost 12 to 9",
  ],
  ["of which one's clock is 59 s behind", ALWAYS, old(REGION, { lag: 59_000 }), "announced"],
  [
    "both clocks are behind",
    ALWAYS,
    old(REGION, { lag: 2 * MINUTE }),
    "unknown: clock behind, clock behind",
    { lag: 2 * MINUTE },
  ],
  ["a second record without anything", ALWAYS, old([]), "announced"],
  ["a first one without anything", [], old(ALWAYS), "announced"],
];

for (const [what, sessions, also, expected, own] of ROWS) {
  Deno.test(`several records make one verdict: ${what}`, async () => {
    const options = { ...own, routes: [ROUTE], days: 7 };
    const mine = old(sessions, own);
    for (const [first, second] of [[mine, also], [also, mine]] as const) {
      const { rows = [], sessions: all, name: _, ...more } = first;
      const { state, verdicts: [verdict] } = await report(rows, all, {
        ...options,
        ...{ started: undefined, lag: undefined, ...more },
        also: [second],
      });
      const at = (instant = NaN) => Math.round((NOW - instant) / MINUTE) / 60;
      const gaps = verdict?.gaps.map(({ kind, start, end }) =>
        `${kind} ${at(start)}${end === undefined ? "" : ` to ${at(end)}`}`
      ) ?? [];
      const causes = verdict?.causes.map(({ cause }) =>
        cause
      ) ?? [];
      const facts = [...gaps, ...causes].join(", ");
      assertEquals(facts === "" ? state : `${state}: ${facts}`, expected);
    }
  });
}

Deno.test("clocks of two databases that are a minute apart, and a session in both, are refused by name", async () => {
  const also = (more: Partial<Record>, sessions = REGION) =>
    report([], ALWAYS, { also: [old(sessions, more)] });
  const refused = (made: Promise<unknown>, message: string) =>
    assertRejects(() => made, RefusedError, message);
  await refused(
    also({ lag: 61_000 }),
    `the clock of ${OLD} says 2027-06-15T11:58:59Z, which is 61 s behind that of the record; ` +
      "correct the clock that is wrong",
  );
  await refused(also({ lag: -61_000 }), "which is 61 s ahead of that of the record");
  await refused(
    also({}, [running(900)]),
    `session a is in the record and in ${OLD}: one is a copy of the other; leave out the copy`,
  );
});

Deno.test("a record in which no process reports is named, if there are several", async () => {
  const quiet = await report([], ALWAYS, {
    also: [old([stopped(900, 8)]), old([running(9, { id: "b" })], { name: NEW })],
  });
  assertEquals(quiet.quietRecords, [OLD]);
  assertStringIncludes(gateText(quiet), `\nNo process was reporting to ${OLD}.\n`);
  assertEquals(JSON.parse(usageJson(quiet)).quietRecords, [OLD]);
  assertEquals((await report([], [stopped(900, 8)])).quietRecords, []);
});

Deno.test("calls, clients and rhythms of several records are added up", async () => {
  const on = (...days: number[]) => days.map((daysAgo) => row(daysAgo, "id a", 2));
  const sessions = [running(300 * 24)];
  const ask = (mine: number[], theirs: number[], client?: string) =>
    report(on(...mine), sessions, {
      ...{ days: 30, isByRhythm: true, routes: [ROUTE], client },
      also: [old([stopped(300 * 24, 9)], { rows: on(...theirs) })],
    });
  const both = await ask([3, 1], [5, 3]);
  const clients = both.clients.map(({ client, calls, days, first, last }) => {
    return [client, calls, days, first, last];
  });
  assertEquals(clients, [["id a", 8, 3, "2027-06-10", NOW - 24 * HOUR]]);
  const daily = both.routes[0]?.days.filter(({ calls }) => calls > 0);
  assertEquals(daily?.map(({ calls }) => calls), [2, 4, 2]);
  // Neither record alone shows a rhythm.
  const due = await ask([92], [184, 276]);
  const rhythms = due.due.map(({ days, pause, silence }) => [days, pause, silence]);
  assertEquals([due.state, rhythms], ["called", [[3, 92, 92]]]);
  const passed = await ask([93, 185], [277]);
  const earlier = passed.earlier.map(({ calls, first, last, lastCalls }) => {
    return [calls, first, last, lastCalls];
  });
  assertEquals([passed.state, earlier], ["announced", [[6, "2026-09-11", "2027-03-14", 2]]]);
  const oneDay = (await ask([40], [40, 50])).earlier;
  assertEquals(oneDay.map(({ calls, lastCalls, pause }) => [calls, lastCalls, pause]), [[
    6,
    4,
    10,
  ]]);
  assertEquals((await ask([], [40], "id a")).client, "id a", "it is on record in one of them");
});

Deno.test("holds of all records put a sunset off", async () => {
  const until = Date.parse("2027-06-20");
  const times = { since: NOW - HOUR, until, released: undefined };
  const hold = { id: "h", route: undefined, ...times, because: "b" };
  const held = await report([], ALWAYS, { also: [old(REGION, { holds: [hold] })] });
  assertEquals(held.announcedUntil, until);
});
