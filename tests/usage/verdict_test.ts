import { assertEquals } from "@std/assert";
import { gapsIn } from "../../lib/usage/verdict.ts";
import type { Heartbeat, UsageRow } from "../../lib/storage/ledger.ts";
import { ALWAYS, DAY, heartbeat, HOUR, MINUTE, NOW, report, row } from "../support/usage_report.ts";

Deno.test("the gate is never clear when the record is incomplete, and lists the gaps", async () => {
  const silent = { server: "b" };
  const stopped = { ...silent, end: "stopped" } as const;
  const rows: [
    what: string,
    rows: UsageRow[],
    heartbeats: Heartbeat[],
    gaps: string[] | "clear" | "called",
    options?: { keptFrom?: string; now?: number },
  ][] = [
    ["no calls, always counting", [], ALWAYS, "clear"],
    ["only what removal does not break", [row(1, "x", 5, { impact: "none" })], ALWAYS, "clear"],
    ["called, and never counting", [row(0, "curl", 1)], [], "called"],
    ["never counting", [], [], ["no server 60 to 0"]],
    ["counting since within the period", [], [heartbeat(47, 0)], ["no server 60 to 47"]],
    ["stopped", [], [heartbeat(100, 1, { end: "stopped" })], ["no server 1 to 0"]],
    ["fell silent", [], [heartbeat(100, 1)], ["silent a 1 to 0"]],
    ["marked gone", [], [heartbeat(100, 1, { end: "gone" })], ["no server 1 to 0"]],
    [
      "a gap",
      [],
      [heartbeat(100, 30, stopped), heartbeat(29, 0)],
      ["no server 30 to 29"],
    ],
    [
      "two gaps",
      [],
      [heartbeat(47, 30, stopped), heartbeat(29, 0)],
      ["no server 60 to 47", "no server 30 to 29"],
    ],
    ["the machine was suspended", [], [heartbeat(100, 30), heartbeat(29, 0)], [
      "no server 30 to 29",
    ]],
    ["a restart", [], [heartbeat(100, 30, stopped), heartbeat(30 - 1 / 70, 0)], "clear"],
    [
      "a restart of over a minute",
      [],
      [heartbeat(100, 30, stopped), heartbeat(30 - 1 / 59, 0)],
      [
        "no server 30 to 29.98",
      ],
    ],
    ["a handover", [], [heartbeat(100, 20, stopped), heartbeat(30, 0)], "clear"],
    ["a long watch over a short one", [], [heartbeat(100, 0), heartbeat(40, 39, stopped)], "clear"],
    ["the last seconds are not flushed yet", [], [heartbeat(100, 1 / 70)], "clear"],
    ["a server cannot write", [], [heartbeat(100, 0), heartbeat(100, 50, silent)], [
      "silent b 50 to 0",
    ]],
    [
      "it could not, long before the period",
      [],
      [heartbeat(100, 0), heartbeat(100, 90, silent)],
      ["silent b 60 to 0"],
    ],
    ["it only registered", [], [heartbeat(100, 0), heartbeat(9, 9, silent)], ["silent b 9 to 0"]],
    [
      "it was killed, and told to be gone",
      [],
      [heartbeat(100, 0), heartbeat(100, 50, { ...silent, end: "gone" })],
      "clear",
    ],
    ["it slept, and came back", [], [
      heartbeat(100, 0),
      heartbeat(100, 50, silent),
      heartbeat(40, 0, silent),
    ], "clear"],
    ["days were deleted", [], ALWAYS, ["deleted 60 to 36"], { keptFrom: "2027-06-14" }],
    ["days before were deleted", [], ALWAYS, "clear", { keptFrom: "2027-06-13" }],
    ["all days were deleted", [], ALWAYS, ["deleted 60 to 0"], { keptFrom: "2027-07-01" }],
    [
      "the gate's clock is ahead",
      [],
      ALWAYS,
      ["silent a 0 to -0.02"],
      { now: NOW + MINUTE + 1_000 },
    ],
    ["the gate's clock is behind", [], ALWAYS, "clear", { now: NOW - HOUR }],
  ];
  for (const [what, usage, heartbeats, expected, options] of rows) {
    const { verdict } = await report(usage, heartbeats, { days: 2, ...options });
    const hours = (instant: number) => Math.round((NOW - instant) / HOUR * 100) / 100;
    const seen = verdict.verdict !== "unknown" ? verdict.verdict : verdict.gaps.map((gap) => {
      const server = gap.reason === "silent" ? ` ${gap.server}` : "";
      return `${gap.reason}${server} ${hours(gap.start)} to ${hours(gap.end)}`;
    });
    assertEquals(seen, expected, what);
  }
});

Deno.test("gapsIn() gives the gaps within an interval, in the order of time", () => {
  const end = NOW - 5 * HOUR;
  const interval = { start: NOW - 10 * HOUR, end };
  const stopped = heartbeat(20, 7, { end: "stopped" });
  const silent = heartbeat(20, 8, { server: "b" });
  const later = heartbeat(3, 0, { server: "c" });
  const coverage = { heartbeats: [stopped, later], keptFrom: undefined };
  const gap = { reason: "no server", start: NOW - 7 * HOUR, end } as const;
  assertEquals(gapsIn(coverage, interval, NOW), [gap]);
  assertEquals(gapsIn({ ...coverage, heartbeats: [stopped, silent, later] }, interval, NOW), [
    { reason: "silent", server: "b", start: NOW - 8 * HOUR, end },
  ]);
  const three = [heartbeat(9, 8, { end: "stopped" }), heartbeat(7, 6, { server: "b" }), later];
  assertEquals(
    gapsIn({ ...coverage, heartbeats: three }, interval, NOW).map(({ reason, start }) => [
      reason,
      (NOW - start) / HOUR,
    ]),
    [["no server", 10], ["no server", 8], ["silent", 6]],
  );
  const two = [heartbeat(20, 6), heartbeat(19, 8, { server: "b" })];
  assertEquals(
    gapsIn({ ...coverage, heartbeats: two }, interval, NOW).map(({ start }) =>
      (NOW - start) / HOUR
    ),
    [8, 6],
  );
  assertEquals(gapsIn({ heartbeats: two, keptFrom: "2027-06-16" }, interval, NOW), [
    { reason: "deleted", ...interval },
  ]);
  const deleted = { heartbeats: [heartbeat(9, 0)], keptFrom: "2027-06-15" };
  assertEquals(gapsIn(deleted, { start: NOW - DAY, end: NOW }, NOW).map(({ end }) => end), [
    NOW - 12 * HOUR,
    NOW - 9 * HOUR,
  ]);
});
