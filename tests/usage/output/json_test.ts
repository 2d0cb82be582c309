/** The JSON of the report: its names are public. */

import { assertEquals } from "@std/assert";
import { usageJson } from "../../../lib/usage/output/json.ts";
import type { Session, UsageRow } from "../../../lib/usage/record/records.ts";
import type { UsageReportOptions } from "../../../lib/usage/verdict/report.ts";
import { ALWAYS, HOUR, NOW, report, row, running, session } from "../../support/usage_report.ts";

/** The members that every report has, in order. */
const ALWAYS_THERE = [
  ...["days", "from", "today", "now", "policies", "usageDays", "judged", "clients", "ignored"],
  ...["atMost", "probes", "verdict", "verdicts", "routes", "completeSince"],
  ...["servedUnregistered", "otherDates"],
];
const without = (name: string) => ALWAYS_THERE.filter((each) => each !== name);
const OF_ROUTE = ["route", "calls", "clients", "verdict"];

const stopped = { id: "b", ended: "stopped" } as const;
const gone = { id: "c", ended: "gone", endedBy: NOW - 50 * HOUR } as const;

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
    [session(1000, 50, gone), session(49, 30, stopped), running(28)],
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
    [...ALWAYS_THERE, "recovery", "doubts", "hidden", "remedy"],
    [...OF_ROUTE, "doubts", "hidden", "remedy", "recovery"],
  ],
  [
    "unknown, and no such day",
    [],
    [running(1000), session(9, 8, { id: "s" })],
    "unknown: unknown, unknown",
    [...without("completeSince"), "doubts", "hidden", "remedy"],
    [...OF_ROUTE, "doubts", "hidden", "remedy"],
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
