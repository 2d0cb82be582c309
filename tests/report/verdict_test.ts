import { assertEquals } from "@std/assert";
import { type Gap, gapsIn } from "../../lib/report/verdict.ts";
import type { Heartbeat, UsageRow } from "../../lib/storage/ledger/records.ts";
import {
  ALWAYS,
  DAY,
  heartbeat,
  HOUR,
  MINUTE,
  NOW,
  POLICY,
  report,
  row,
} from "../support/usage_report.ts";

const hoursAgo = (instant: number) => Math.round((NOW - instant) / HOUR * 100) / 100;

/** Describes gaps by their hours before now. */
const described = (gaps: readonly Gap[]) =>
  gaps.map(({ start, end, ...gap }) => {
    const [what] = ["server", "route"].flatMap((name) =>
      name in gap ? [` ${Object(gap)[name]}`] : []
    );
    return `${gap.reason}${what ?? ""} ${hoursAgo(start)} to ${hoursAgo(end)}`;
  });

const TRUSTING = { trustStops: true } as const;
const AUDIO = { "/audio/:token": POLICY };
const stopped = { server: "b", end: "stopped" } as const;

Deno.test("the gate is never clear when the record is incomplete, and lists the gaps", async () => {
  const silent = { server: "b" };
  const other = row(1, "x", 5, { impact: "none" });
  const rows: [
    what: string,
    heartbeats: Heartbeat[],
    verdict: string[] | "clear" | "called",
    options?: { usage?: UsageRow[]; keptFrom?: string; now?: number; trustStops?: true },
  ][] = [
    ["no calls, always counting", ALWAYS, "clear"],
    ["no call that removal breaks", ALWAYS, "clear", { usage: [other] }],
    ["called, and never counting", [], "called", { usage: [row(0, "curl", 1)] }],
    ["never counting", [], ["no server 60 to 0"]],
    ["counting since within the period", [heartbeat(47, 0)], ["no server 60 to 47"]],
    ["stopped", [heartbeat(100, 1, stopped)], ["no server 1 to 0"]],
    ["fell silent", [heartbeat(100, 1)], ["silent a 1 to 0"]],
    ["marked gone", [heartbeat(100, 1, { end: "gone" })], ["no server 1 to 0"]],
    ["a gap", [heartbeat(100, 30, stopped), heartbeat(29, 0)], ["no server 30 to 29"]],
    [
      "two gaps",
      [heartbeat(47, 30, stopped), heartbeat(29, 0)],
      ["no server 60 to 47", "no server 30 to 29"],
    ],
    ["the ledger was restored", [heartbeat(100, 30), heartbeat(29, 0)], ["silent a 30 to 29"]],
    ["a restart", [heartbeat(100, 30, stopped), heartbeat(30 - 1 / 70, 0)], "clear"],
    [
      "a restart of over a minute",
      [heartbeat(100, 30, stopped), heartbeat(30 - 1 / 59, 0)],
      ["no server 30 to 29.98"],
    ],
    [
      "a restart of over a minute, if stops are trusted",
      [heartbeat(100, 30, stopped), heartbeat(30 - 1 / 59, 0)],
      "clear",
      TRUSTING,
    ],
    ["stopped, if stops are trusted", [heartbeat(100, 1, stopped)], "clear", TRUSTING],
    [
      "stopped before the period, if stops are trusted",
      [heartbeat(100, 70, stopped), heartbeat(50, 0)],
      "clear",
      TRUSTING,
    ],
    [
      "a power cut",
      [heartbeat(100, 5, { end: "gone" }), heartbeat(4, 0, { server: "b" })],
      ["no server 5 to 4"],
    ],
    [
      "a power cut, if stops are trusted",
      [heartbeat(100, 5, { end: "gone" }), heartbeat(4, 0, { server: "b" })],
      "clear",
      TRUSTING,
    ],
    [
      "stopped while another was silent, though stops are trusted",
      [heartbeat(100, 30, stopped), heartbeat(100, 40), heartbeat(29, 0, { server: "c" })],
      ["silent a 40 to 0"],
      TRUSTING,
    ],
    [
      "begun within the period, though stops are trusted",
      [heartbeat(47, 0)],
      ["no server 60 to 47"],
      TRUSTING,
    ],
    [
      "a route that was marked later",
      [heartbeat(100, 20, { ...stopped, policies: AUDIO }), heartbeat(20, 0)],
      ["not counted /video/:token 60 to 20"],
    ],
    ["a route that was marked before", [
      heartbeat(100, 70, { ...stopped, policies: AUDIO }),
      heartbeat(70, 0),
    ], "clear"],
    [
      "a route that was marked later, after deploys",
      [50, 40, 30, 20].map((until) => heartbeat(until + 10, until, { ...stopped, policies: AUDIO }))
        .concat(heartbeat(20, 0)),
      ["not counted /video/:token 60 to 20"],
    ],
    ["a route that one server does not count", [
      heartbeat(100, 0),
      heartbeat(9, 8, { ...stopped, policies: AUDIO }),
    ], ["not counted /video/:token 9 to 8"]],
    [
      "a route that a server which has just started does not count",
      [
        heartbeat(100, 0),
        heartbeat(0, 0, { server: "b", policies: AUDIO }),
      ],
      ["silent a 0 to 0", "silent b 0 to 0", "not counted /video/:token 0 to 0"],
      { now: NOW + 1_000 },
    ],
    ["no route was marked", [heartbeat(100, 0, { policies: {} })], [
      "not counted /audio/:token 60 to 0",
      "not counted /video/:token 60 to 0",
    ]],
    ["a handover", [heartbeat(100, 20, stopped), heartbeat(30, 0)], "clear"],
    ["a long watch over a short one", [heartbeat(100, 0), heartbeat(40, 39, stopped)], "clear"],
    ["killed a minute ago", [heartbeat(100, 1 / 70)], ["silent a 0.01 to 0"]],
    ["one cannot write", [heartbeat(100, 0), heartbeat(100, 50, silent)], ["silent b 50 to 0"]],
    [
      "one could not, long before the period",
      [heartbeat(100, 0), heartbeat(100, 90, silent)],
      ["silent b 60 to 0"],
    ],
    ["one only registered", [heartbeat(100, 0), heartbeat(9, 9, silent)], ["silent b 9 to 0"]],
    [
      "one was killed, and marked gone",
      [heartbeat(100, 0), heartbeat(100, 50, { ...silent, end: "gone" })],
      "clear",
    ],
    [
      "one slept, and came back",
      [heartbeat(100, 0), heartbeat(100, 50, stopped), heartbeat(40, 0, silent)],
      "clear",
    ],
    [
      "one did not find its last heartbeat, and began again",
      [heartbeat(100, 0), heartbeat(100, 50, silent), heartbeat(40, 0, silent)],
      ["silent b 50 to 40"],
    ],
    ["stopped beside another", [heartbeat(100, 0), heartbeat(100, 1, stopped)], "clear"],
    [
      "one reported from the future, after its clock was set back",
      [heartbeat(100, 0), heartbeat(50, -9, silent)],
      ["ahead b 50 to 0"],
    ],
    [
      "one only ever reported from the future",
      [heartbeat(100, 0), heartbeat(-9, -10, stopped)],
      ["ahead b 60 to 0"],
    ],
    [
      "a server of the future was declared gone",
      [heartbeat(100, 0), heartbeat(-9, -10, { ...silent, end: "gone", declaredAt: NOW - HOUR })],
      ["ahead b 60 to 1"],
    ],
    [
      "one reported from the future, was declared gone, and its time has passed since",
      [
        heartbeat(100, 0),
        heartbeat(50, 10, { ...silent, end: "gone", declaredAt: NOW - 20 * HOUR }),
      ],
      ["ahead b 50 to 20"],
    ],
    [
      "the same, before the period",
      [
        heartbeat(100, 0),
        heartbeat(90, 10, { ...silent, end: "gone", declaredAt: NOW - 70 * HOUR }),
      ],
      "clear",
    ],
    [
      "only a server of the future, declared gone",
      [heartbeat(50, -10, { end: "gone", declaredAt: NOW })],
      ["no server 60 to 0", "ahead a 50 to 0"],
    ],
    ["days were deleted", ALWAYS, ["deleted 60 to 36"], { keptFrom: "2027-06-14" }],
    ["days before were deleted", ALWAYS, "clear", { keptFrom: "2027-06-13" }],
    ["all days were deleted", ALWAYS, ["deleted 60 to 0"], { keptFrom: "2027-07-01" }],
    ["not reported since", ALWAYS, ["silent a 0 to -0.02"], { now: NOW + MINUTE + 1_000 }],
  ];
  for (const [what, heartbeats, expected, { usage = [], ...options } = {}] of rows) {
    const { verdict } = await report(usage, heartbeats, { days: 2, ...options });
    const seen = verdict.verdict === "unknown" ? described(verdict.gaps) : verdict.verdict;
    assertEquals(seen, expected, what);
  }
});

Deno.test("gapsIn() gives the gaps within an interval, in the order of time", () => {
  const later = heartbeat(3, 0, { server: "c" });
  const [early, silent] = [heartbeat(20, 7, { end: "stopped" }), heartbeat(20, 8, { server: "b" })];
  const rows: [heartbeats: Heartbeat[], gaps: string[], keptFrom?: string][] = [
    [[early, later], ["no server 7 to 5"]],
    [[early, silent, later], ["silent b 8 to 5"]],
    [
      [heartbeat(9, 8, { end: "stopped" }), heartbeat(7, 6, { server: "b" }), later],
      ["no server 10 to 9", "no server 8 to 7", "silent b 6 to 5"],
    ],
    [[heartbeat(20, 6), silent], ["silent b 8 to 5", "silent a 6 to 5"]],
    [[heartbeat(20, 6), silent], ["deleted 10 to 5"], "2027-06-16"],
  ];
  const interval = { start: NOW - 10 * HOUR, end: NOW - 5 * HOUR, routes: [] };
  for (const [heartbeats, gaps, keptFrom] of rows) {
    assertEquals(described(gapsIn({ heartbeats, keptFrom }, interval, NOW)), gaps);
  }
  const deleted = { heartbeats: [heartbeat(9, 0)], keptFrom: "2027-06-15" };
  assertEquals(described(gapsIn(deleted, { start: NOW - DAY, end: NOW, routes: [] }, NOW)), [
    "deleted 24 to 12",
    "no server 12 to 9",
  ]);
});
