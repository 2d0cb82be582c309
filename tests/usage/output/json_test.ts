/** The JSON of the report: its names are public. */

import { assertEquals } from "@std/assert";
import type { Session, UsageRow } from "../../../lib/usage/record/records.ts";
import type { UsageReportOptions } from "../../../lib/usage/verdict/report.ts";
import { PROCESS } from "../../support/counted_call.ts";
import { usageJson } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  HOUR,
  intent,
  NOW,
  POLICY,
  report,
  row,
  running,
  session,
} from "../../support/usage_report.ts";

/** The members that every report has, in order. */
const ALWAYS_THERE = [
  ...[
    "days",
    "from",
    "today",
    "now",
    "policies",
    "retainDays",
    "isByRhythm",
    "judged",
  ],
  ...["clients", "ignored", "atMost", "probes", "verdict", "verdicts", "due", "earlier"],
  ...["announcedUntil", "clientErrors", "onRecordSince", "routes", "completeSince"],
  ...["servedUnrecorded", "otherDates"],
];
const without = (name: string) => ALWAYS_THERE.filter((each) => each !== name);
const OF_ROUTE = ["route", "calls", "clients", "verdict", "due", "earlier", "announcedUntil"];

const stopped = { id: "b", ended: "stopped" } as const;

/** What happened, the verdicts, and the members of the report and of the verdict on a route. */
const REPORTS: readonly (readonly [
  what: string,
  rows: readonly UsageRow[],
  sessions: readonly Session[],
  verdicts: string,
  members: readonly string[],
  ofRoute: readonly string[],
  options?: Partial<UsageReportOptions>,
])[] = [
  [
    "clear, on the operator's word",
    [],
    [session(1000, 50, { id: "c" }), session(49, 30, stopped), running(28)],
    "clear: clear, clear",
    [...ALWAYS_THERE, "trusted"],
    [...OF_ROUTE, "trusted"],
    { trustStops: true },
  ],
  [
    "called",
    [row(0, "curl", 1), row(0, "curl", 1, { route: "/video/:token" })],
    ALWAYS,
    "called: called, called",
    ALWAYS_THERE,
    OF_ROUTE,
  ],
  [
    "unknown, and a day on which it can be clear",
    [],
    [session(1000, 30, stopped), running(29)],
    "unknown: unknown, unknown",
    [...ALWAYS_THERE, "recovery", "doubts", "hidden", "left", "uncertain"],
    [...OF_ROUTE, "doubts", "hidden", "left", "uncertain", "recovery"],
  ],
  [
    "unknown, and no such day",
    [],
    [session(1000, 8, { id: "s" })],
    "unknown: unknown, unknown",
    [...without("completeSince"), "doubts", "hidden", "left", "uncertain"],
    [...OF_ROUTE, "doubts", "hidden", "left", "uncertain"],
  ],
];

for (const [what, rows, sessions, expected, members, ofRoute, options] of REPORTS) {
  Deno.test(`usageJson() has the same members in the same order: ${what}`, async () => {
    const json = JSON.parse(usageJson(await report(rows, sessions, options)));
    const states = json.verdicts.map(({ verdict }: { verdict: string }) => verdict).join(", ");
    assertEquals(`${json.verdict}: ${states}`, expected);
    assertEquals(Object.keys(json), members);
    for (const verdict of json.verdicts) assertEquals(Object.keys(verdict), ofRoute);
  });
}

Deno.test("usageJson() has the facts of each doubt, with instants in ISO 8601", async () => {
  const sessions = [
    session(1000, 150, { id: "a", timeline: "7-0" }),
    session(149, 100, { id: "b", process: { ...PROCESS, pid: 1 }, mayServeUnrecorded: true }),
    session(101, 50, { id: "c", policies: { "/audio/:token": POLICY } }),
    session(100, 1, { id: "d" }),
    running(0.5, { id: "e" }),
  ];
  const intents = [intent("d", 1.5), intent("e", 0.5)];
  const json = JSON.parse(
    usageJson(await report([], sessions, { intents, started: NOW - 160 * HOUR })),
  );
  const process = { ...PROCESS, started: "2027-01-31T12:00:00.000Z" };
  const now = "2027-06-15T12:00:00.000Z";
  const [audio, video] = ["/audio/:token", "/video/:token"];
  assertEquals(
    json.doubts,
    [
      { reason: "started", until: "2027-06-08T20:00:00.000Z", isOpen: false },
      {
        reason: "stop",
        start: "2027-06-09T06:00:00.000Z",
        end: "2027-06-09T07:00:00.000Z",
        until: "2027-06-09T07:00:00.000Z",
        isOpen: false,
      },
      {
        reason: "restored",
        start: "2027-06-09T06:00:00.000Z",
        end: "2027-06-09T07:00:00.000Z",
        until: "2027-06-10T07:00:00.000Z",
        isOpen: false,
      },
      {
        reason: "unrecorded",
        session: "b",
        process: { ...process, pid: 1 },
        until: "2027-06-11T08:00:00.000Z",
        isOpen: false,
      },
      {
        reason: "not counted",
        session: "c",
        process,
        route: video,
        until: "2027-06-13T10:00:00.000Z",
        isOpen: false,
        isUnmounted: false,
      },
      { reason: "in flight", session: "e", process, route: audio, until: now, isOpen: true },
      {
        reason: "stop",
        start: "2027-06-15T11:00:00.000Z",
        end: "2027-06-15T11:30:00.000Z",
        until: "2027-06-15T11:30:00.000Z",
        isOpen: false,
      },
      {
        reason: "intent",
        session: "d",
        process,
        route: audio,
        start: "2027-06-15T10:30:00.000Z",
        until: "2027-06-16T11:00:00.000Z",
        isOpen: false,
      },
    ].toSorted((a, b) => Date.parse(a.until) - Date.parse(b.until)),
  );
  const left = json.left.map(({ reason }: { reason: string }) => reason);
  assertEquals(left, ["started", "not counted", "in flight"]);

  const none = [session(1000, 1)];
  const alone = JSON.parse(usageJson(await report([], none, { lag: 3 * HOUR })));
  assertEquals(alone.doubts, [
    { reason: "ahead", until: now, isOpen: true, then: now },
    {
      reason: "no server",
      routes: [audio, video],
      start: "2027-06-15T11:00:00.000Z",
      until: now,
      isOpen: true,
    },
  ]);
});
