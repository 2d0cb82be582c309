/** The JSON of the report: its names are public. */

import { assertEquals } from "@std/assert";
import type { Session, UsageRow } from "../../../lib/usage/record/records.ts";
import { PROCESS } from "../../support/counted_call.ts";
import { usageJson } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  AUDIO,
  HOUR,
  NOW,
  ONLY_AUDIO,
  report,
  row,
  running,
  session,
  stopped,
  UNDATED,
  VIDEO,
} from "../../support/usage_report.ts";

/** The members that every report has, in order. */
const MEMBERS = [
  ...["verdict", "days", "isByRhythm", "from", "today", "asOf", "policies", "judged"],
  ...["verdicts", "ignored", "probes", "retainDays", "otherDates", "routes", "gaps"],
  ...["clearFrom", "clients", "due", "earlier", "onRecordSince", "announcedUntil"],
  ...["clientErrors", "quietRecords", "gapCount"],
];
const OF_ROUTE = [
  ...["route", "verdict", "calls", "clients", "causes", "due", "earlier", "announcedUntil"],
  "clearFrom",
];
const without = (members: readonly string[], ...names: readonly string[]) =>
  members.filter((each) => !names.includes(each));
const [ANNOUNCED, OF_ANNOUNCED] = [without(MEMBERS, "clearFrom"), without(OF_ROUTE, "clearFrom")];

/** What happened, the verdicts, and the members of the report and of the verdict on a route. */
const REPORTS: readonly (readonly [
  what: string,
  rows: readonly UsageRow[],
  sessions: readonly Session[],
  verdicts: string,
  members: readonly string[],
  ofRoute: readonly string[],
])[] = [
  [
    "clear",
    [],
    [running(1000, { policies: { [AUDIO]: UNDATED, [VIDEO]: UNDATED } })],
    "clear: clear, clear",
    without(ANNOUNCED, "announcedUntil"),
    without(OF_ANNOUNCED, "announcedUntil"),
  ],
  ["announced", [], ALWAYS, "announced: announced, announced", ANNOUNCED, OF_ANNOUNCED],
  [
    "called",
    [row(0, "curl", 1), row(0, "curl", 1, { route: VIDEO })],
    ALWAYS,
    "called: called, called",
    ANNOUNCED,
    OF_ANNOUNCED,
  ],
  [
    "unknown, and a day on which it can be clear",
    [],
    [stopped(1000, 30), running(9)],
    "unknown: unknown, unknown",
    MEMBERS,
    OF_ROUTE,
  ],
  [
    "unknown, and no such day",
    [],
    [running(1000, { retainDays: 1 })],
    "unknown: unknown, unknown",
    ANNOUNCED,
    OF_ANNOUNCED,
  ],
];

for (const [what, rows, sessions, expected, members, ofRoute] of REPORTS) {
  Deno.test(`usageJson() has the same members: ${what}`, async () => {
    const json = JSON.parse(usageJson(await report(rows, sessions)));
    const states = json.verdicts.map(({ verdict }: { verdict: string }) => verdict).join(", ");
    assertEquals(`${json.verdict}: ${states}`, expected);
    assertEquals(Object.keys(json).toSorted(), members.toSorted());
    assertEquals(Object.keys(json)[0], "verdict");
    for (const verdict of json.verdicts) assertEquals(Object.keys(verdict), ofRoute);
  });
}

Deno.test("usageJson() has the facts of each gap and cause, with instants in ISO 8601", async () => {
  const process = { ...PROCESS, started: "2027-01-31T12:00:00.000Z" };
  const { gaps, verdicts, asOf } = JSON.parse(
    usageJson(
      await report([], [
        stopped(1000, 30),
        session(29, 20, { id: "c", lost: NOW - 29.5 * HOUR, ended: "continued", opened: "it" }),
        session(20, 10, { id: "d", opened: "it", onDemand: true, process: { ...PROCESS, pid: 1 } }),
        running(9, { id: "f" }),
        running(8, { id: "e", ...ONLY_AUDIO }),
      ], { days: 40 }),
    ),
  );
  assertEquals(asOf, "2027-06-15T12:00:00.000Z");
  const both = { routes: [AUDIO, VIDEO] };
  const off = { onDemand: false, weighs: true };
  assertEquals(gaps, [
    {
      ...{ kind: "stop", ...both },
      ...{ start: "2027-06-14T06:00:00.000Z", end: "2027-06-14T07:00:00.000Z", ...off },
    },
    {
      ...{ kind: "lost", ...both },
      ...{ start: "2027-06-14T06:30:00.000Z", end: "2027-06-14T07:00:00.000Z" },
      ...{ session: "c", process, ...off },
    },
    {
      ...{ kind: "silent", ...both, start: "2027-06-15T02:00:00.000Z" },
      ...{ session: "d", process: { ...process, pid: 1 }, onDemand: true, weighs: false },
    },
    {
      ...{ kind: "not counted", routes: [VIDEO] },
      ...{ start: "2027-06-15T04:00:00.000Z", end: "2027-06-15T12:00:00.000Z" },
      ...{ session: "e", process, ...off },
    },
  ]);
  const [, ofVideo] = verdicts;
  assertEquals(ofVideo.causes, [
    { cause: "not counted", session: "e", process, clearFrom: "2027-06-15" },
  ]);

  const causesOf = async (...args: Parameters<typeof report>) =>
    JSON.parse(usageJson(await report(...args))).verdicts[0].causes;
  assertEquals(await causesOf([], [stopped(100, 9)], { lag: HOUR }), [
    {
      cause: "too young",
      since: "2027-06-11T08:00:00.000Z",
      isRetained: true,
      clearFrom: "2027-06-19",
    },
    { cause: "no process", since: "2027-06-15T03:00:00.000Z", clearFrom: "2027-06-23" },
    {
      cause: "clock behind",
      record: "the record",
      time: { databaseTime: "2027-06-15T11:00:00.000Z", now: "2027-06-15T12:00:00.000Z" },
      clearFrom: "2027-06-23",
    },
    { cause: "gaps", missingMs: 9 * HOUR, limitMs: 7 * 24 / 30 * HOUR, clearFrom: "2027-06-23" },
  ]);
});
