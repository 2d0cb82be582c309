import { assertEquals } from "@std/assert";
import type { Session, UsageRow } from "../../../lib/usage/record/records.ts";
import type { Doubt } from "../../../lib/usage/verdict/doubts.ts";
import type { Remedy } from "../../../lib/usage/verdict/verdict.ts";
import { PROCESS } from "../../support/counted_call.ts";
import {
  ALWAYS,
  HOUR,
  MINUTE,
  NOW,
  POLICY,
  report,
  row,
  running,
  session,
} from "../../support/usage_report.ts";

const hoursAgo = (instant: number) => Math.round((NOW - instant) / HOUR * 100) / 100;

/** Describes doubts by their hours before now. */
const described = (doubts: readonly Doubt[]) =>
  doubts.map((doubt) => {
    const [what] = ["session", "route"].flatMap((name) =>
      name in doubt ? [` ${Object(doubt)[name]}`] : []
    );
    const from = "start" in doubt ? ` ${hoursAgo(doubt.start)} to` : "";
    return `${doubt.reason}${what ?? ""}${from} ${hoursAgo(doubt.until)}`;
  });

const TRUSTING = { trustStops: true } as const;
const AUDIO = { "/audio/:token": POLICY };
const [stopped, gone] = [{ id: "b", ended: "stopped" }, { ended: "gone" }] as const;
const hoursBefore = (hours: number) => NOW - Math.round(hours * HOUR);
/** A session of which the operator has said when its process had ended. */
const ended = (reportedHoursAgo: number, endedHoursAgo: number, more: Partial<Session> = {}) =>
  session(100, reportedHoursAgo, {
    id: "b",
    ...gone,
    endedBy: hoursBefore(endedHoursAgo),
    ...more,
  });
const lapsed = { ended: "lapsed" } as const;
const b = { id: "b" } as const;

Deno.test("the gate is never clear when the record is incomplete, and says why", async () => {
  const other = row(1, "x", 5, { impact: "none" });
  const rows: [
    what: string,
    sessions: Session[],
    verdict: string[] | "clear" | "called",
    options?: {
      usage?: UsageRow[];
      started?: number;
      trustStops?: true;
      routes?: string[];
      lag?: number;
    },
  ][] = [
    ["no calls, always counting", ALWAYS, "clear"],
    ["no call that removal breaks", ALWAYS, "clear", { usage: [other] }],
    ["called, and hardly ever counting", [running(1)], "called", { usage: [row(0, "curl", 1)] }],
    ["never counting", [], ["started 0"]],
    ["counting since within the period", [running(47)], ["started 47"]],
    ["stopped", [session(100, 1, stopped)], ["stop 1 to 0"]],
    ["fell silent", [session(100, 1)], ["silent a 0"]],
    ["marked gone", [session(100, 1, gone)], ["stop 1 to 0"]],
    ["ended within a minute", [running(100), ended(50, 50 - 1 / 61)], "clear"],
    ["ended a minute later", [running(100), ended(50, 50 - 1 / 60)], ["cut off b 49.98"]],
    ["ended later, before the period", [running(100), ended(90, 61)], "clear"],
    ["ended later, in it", [running(100), ended(90, 59)], ["cut off b 59"]],
    [
      "ended later, by the machine's clock: the ledger's time was ahead",
      [running(100), ended(50, 50.5, { clock: hoursBefore(51) })],
      ["cut off b 49.5"],
    ],
    [
      "ended later, by the ledger's time: the machine's clock was ahead",
      [running(100), ended(50, 49, { clock: hoursBefore(49) })],
      ["cut off b 49"],
    ],
    [
      "ended later, by two clocks",
      [running(100), ended(50, 49, { clock: hoursBefore(52) })],
      ["cut off b 47"],
    ],
    [
      "ended later, by the ledger's time when it was said: it was ahead",
      [running(100), ended(50, 49.9, { lead: HOUR })],
      ["cut off b 48.9"],
    ],
    [
      "ended within a minute, and the ledger's time was always ahead",
      [running(100), ended(50, 51 - 1 / 61, { clock: hoursBefore(51), lead: HOUR })],
      "clear",
    ],
    ["ended later, if stops are trusted", [ended(50, 40), running(39)], ["cut off b 40"], TRUSTING],
    ["ended later, and just before the next start", [ended(90, 70), running(70 - 1 / 61)], "clear"],
    ["ended later, and long before the next start", [ended(90, 70), running(50)], [
      "stop 70 to 50",
    ]],
    [
      "ended before the record was started again",
      [running(100), ended(90, 51, { clock: hoursBefore(50), restarted: hoursBefore(50) })],
      ["started 50"],
      { started: hoursBefore(50) },
    ],
    [
      "ended after the record was started again",
      [running(100), ended(90, 49.99, { clock: hoursBefore(50), restarted: hoursBefore(50) })],
      ["started 50", "cut off b 49.99"],
      { started: hoursBefore(50) },
    ],
    [
      "ended later, and did not count a route",
      [running(100), ended(90, 40, { policies: AUDIO })],
      ["not counted b 40"],
      { routes: ["/video/:token"] },
    ],
    [
      "ended later, and only registered without a route",
      [running(100), ended(50, 40, { sequence: 0, policies: AUDIO })],
      ["not counted b 40"],
      { routes: ["/video/:token"] },
    ],
    ["a stop", [session(100, 30, stopped), running(29)], ["stop 30 to 29"]],
    ["two", [session(100, 50, stopped), session(47, 30, stopped), running(29)], [
      "stop 50 to 47",
      "stop 30 to 29",
    ]],
    ["the machine slept", [session(100, 30, lapsed), running(29)], ["stop 30 to 29"]],
    ["it slept, if stops are trusted", [session(100, 30, lapsed), running(29)], "clear", TRUSTING],
    ["it slept beside another", [session(100, 30, lapsed), running(100), running(29)], "clear"],
    ["the record started again", [session(100, 30), running(29)], ["started 29", "silent a 0"], {
      started: NOW - 29 * HOUR,
    }],
    [
      "the record started again, and the silent one is gone",
      [session(100, 30, gone), running(29)],
      ["started 29"],
      { started: NOW - 29 * HOUR },
    ],
    ["a restart", [session(100, 30, stopped), running(30 - 1 / 70)], "clear"],
    ["a restart of a minute", [session(100, 30, stopped), running(30 - 1 / 60)], [
      "stop 30 to 29.98",
    ]],
    [
      "a restart of a minute, if stops are trusted",
      [session(100, 30, stopped), running(30 - 1 / 60)],
      "clear",
      TRUSTING,
    ],
    ["stopped, if stops are trusted", [session(100, 1, stopped)], "clear", TRUSTING],
    [
      "stopped before the period, if stops are trusted",
      [session(100, 70, stopped), running(50)],
      "clear",
      TRUSTING,
    ],
    ["a power cut", [session(100, 5, gone), running(4, b)], ["stop 5 to 4"]],
    [
      "a power cut, if stops are trusted",
      [session(100, 5, gone), running(4, b)],
      "clear",
      TRUSTING,
    ],
    [
      "stopped while another was silent, though stops are trusted",
      [session(100, 30, stopped), session(100, 40), running(29, { id: "c" })],
      ["silent a 0"],
      TRUSTING,
    ],
    ["begun within the period, though stops are trusted", [running(47)], ["started 47"], TRUSTING],
    [
      "a route that was marked later",
      [session(100, 20, { ...stopped, policies: AUDIO }), running(20)],
      ["not counted b 20"],
    ],
    [
      "a route that was marked later, and is not judged",
      [session(100, 20, { ...stopped, policies: AUDIO }), running(20)],
      "clear",
      { routes: ["/audio/:token"] },
    ],
    ["a route that was marked before", [
      session(100, 70, { ...stopped, policies: AUDIO }),
      running(70),
    ], "clear"],
    [
      "a route that was marked later, after deploys",
      [50, 40, 30, 20].map((until) => session(until + 50, until, { ...stopped, policies: AUDIO }))
        .concat(running(20)),
      ["not counted b 20"],
    ],
    ["a route that one server does not count", [
      running(100),
      session(9, 8, { ...stopped, policies: AUDIO }),
    ], ["not counted b 8"]],
    ["a route that a running server does not count", [
      running(100),
      running(9, { ...b, policies: AUDIO }),
    ], ["not counted b 0"]],
    [
      "a route that a server does not count that stopped before it reported",
      [running(100), session(9, 9, { ...stopped, policies: AUDIO })],
      "clear",
    ],
    [
      "a server that has only registered",
      [running(100), running(0, { ...b, began: NOW + 5_000 })],
      ["silent b 0"],
    ],
    [
      "no route is marked any more",
      [session(100, 9, stopped), running(9, { policies: {} })],
      ["not counted a 0"],
      { routes: ["/audio/:token"] },
    ],
    ["a handover", [session(100, 20, stopped), running(30)], "clear"],
    ["a long session over a short one", [running(100), session(40, 39, stopped)], "clear"],
    ["killed a second ago", [session(100, 1 / 3600)], ["silent a 0"]],
    ["reported at the very moment", [session(100, 0)], ["silent a 0"]],
    ["one cannot write", [running(100), session(100, 50, b)], ["silent b 0"]],
    ["one could not, long before the period", [running(100), session(100, 90, b)], ["silent b 0"]],
    ["one only registered", [running(100), session(9, 9, b)], ["silent b 0"]],
    [
      "one was killed, and declared gone",
      [running(100), session(100, 50, { ...b, ...gone })],
      "clear",
    ],
    ["stopped beside another", [running(100), session(100, 1, stopped)], "clear"],
    ["the database's clock was set back by a minute", ALWAYS, ["ahead 0"], { lag: MINUTE }],
    ["it was, though stops are trusted", ALWAYS, ["ahead 0"], { lag: MINUTE, trustStops: true }],
    ["it was set back by less", ALWAYS, "clear", { lag: MINUTE - 1 }],
    ["days were deleted", ALWAYS, ["started 36"], { started: Date.parse("2027-06-14") }],
    ["days before were deleted", ALWAYS, "clear", { started: Date.parse("2027-06-13") }],
    ["a stop right after what was deleted", [running(50)], ["stop 60 to 50"], {
      started: Date.parse("2027-06-13"),
    }],
  ];
  for (const [what, sessions, expected, { usage = [], ...options } = {}] of rows) {
    const { verdict } = await report(usage, sessions, { days: 2, ...options });
    const seen = verdict.state === "unknown" ? described(verdict.doubts) : verdict.state;
    assertEquals(seen, expected, what);
  }
});

Deno.test("an unknown verdict says which words would help, and what they would leave", async () => {
  const rows: [
    what: string,
    sessions: Session[],
    gone: string[],
    trustStops: boolean,
    left: string[],
  ][] = [
    ["a stop", [session(100, 30, stopped), running(29)], [], true, []],
    ["a silent server", [running(100), session(100, 50, b)], ["b"], false, []],
    ["a power cut", [session(100, 50, b), running(4)], ["b"], true, []],
    ["a power cut of seconds", [session(100, 4, b), running(4)], ["b"], false, []],
    ["killed a second ago", [running(100), session(100, 1 / 3600, b)], [], false, ["silent b 0"]],
    ["begun within the period", [running(47), session(30, 20, b)], ["b"], false, ["started 47"]],
    ["only deleted days", [running(47)], [], false, ["started 47"]],
  ];
  for (const [what, sessions, gone, trustStops, left] of rows) {
    const { verdict } = await report([], sessions, { days: 2 });
    const remedy: Remedy | undefined = verdict.state === "unknown" ? verdict.remedy : undefined;
    assertEquals(remedy?.gone, gone.map((id) => ({ id, process: PROCESS })), what);
    assertEquals(remedy?.trustStops, trustStops, what);
    assertEquals(described(remedy?.left ?? []), left, what);
  }
});
