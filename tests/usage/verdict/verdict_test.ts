/** Whether a route may be deleted: the states, and why a verdict is unknown. */

import { assertEquals } from "@std/assert";
import type { Session } from "../../../lib/usage/record/records.ts";
import { durationText } from "../../../lib/usage/output/wording.ts";
import type { Cause } from "../../../lib/usage/verdict/verdict.ts";
import {
  ALWAYS,
  AUDIO,
  before,
  HOUR,
  MINUTE,
  NOW,
  ONLY_AUDIO,
  POLICIES,
  report,
  row,
  running,
  silent,
  stopped,
  UNDATED,
  VIDEO,
} from "../../support/usage_report.ts";

const DAYS = 24;
/** Processes that fell silent one after another. */
const silentOnes = (count: number, more: Partial<Session> = {}) =>
  Array.from({ length: count }, (_, index) => silent(30 + index / 99, 29, more));
const [always] = ALWAYS as [Session];

/** Describes a cause by its facts, with hours before now. */
function described(cause: Cause): string {
  const { cause: kind, clearFrom } = cause;
  const facts = [];
  if ("since" in cause && cause.since !== undefined) {
    facts.push(Math.round((NOW - cause.since) / HOUR * 100) / 100);
  }
  if ("session" in cause) facts.push(cause.session);
  if ("isRetained" in cause && !cause.isRetained) facts.push("never");
  if ("missingMs" in cause) {
    facts.push(`${durationText(cause.missingMs)} of ${durationText(cause.limitMs)}`);
  }
  return [kind, ...facts, clearFrom?.slice(5)].filter((fact) => fact !== undefined).join(" ");
}

/** What happened, and why the verdict on the last two days is unknown, with the day from which it can be clear. */
const CAUSES: readonly (readonly [
  what: string,
  sessions: readonly Session[],
  causes: readonly string[],
  options?: Parameters<typeof report>[2],
])[] = [
  ["nothing is wrong", ALWAYS, []],

  ["no session", [], ["too young 06-18"]],
  ["a new record", [running(1)], ["too young 1 06-18"]],
  ["one that began with the period", [running(60)], []],
  ["one that began just after it", [running(60 - 1 / 3600)], ["too young 60 06-16"]],
  ["one that started again", ALWAYS, ["too young 30 06-17"], { started: before(30) }],
  ["one whose first days were deleted", ALWAYS, [], { started: before(60) }],
  ["a route that was counted later", [stopped(99 * DAYS, 9, ONLY_AUDIO), running(9)], [
    "too young 9 06-18",
  ], { routes: [VIDEO] }],
  ["counts that are not kept for so long", [running(99, { retainDays: 1 })], [
    "too young 99 never",
  ]],
  ["the least of what processes keep", [always, running(99, { id: "b", retainDays: 1 })], [
    "too young 1000 never",
  ]],

  ["no process now", [stopped(99 * DAYS, 1)], ["no process 1 06-15"]],
  ["for too long", [stopped(99 * DAYS, 3)], ["no process 3 06-18", "gaps 3 h of 1 h 36 min 06-18"]],
  ["it fell silent", [silent(99 * DAYS, 1)], ["no process 1 06-15"]],
  ["it ran on demand", [stopped(99 * DAYS, 9, { onDemand: true })], []],
  ["another ran on demand before", [
    stopped(99 * DAYS, 9, { onDemand: true }),
    stopped(9, 1),
  ], ["no process 1 06-15"]],
  ["only a job runs", [stopped(99 * DAYS, 1), running(1, { policies: {} })], [
    "no process 1 06-15",
  ]],
  ["a job runs, too", [always, running(9, { id: "b", policies: {} })], []],

  ["a process leaves the route out", [always, running(1, { id: "b", ...ONLY_AUDIO })], [
    "not counted b 06-15",
  ], { routes: [VIDEO] }],
  ["for less than a minute", [always, running(1 / 61, { id: "b", ...ONLY_AUDIO })], [], {
    routes: [VIDEO],
  }],
  ["it is cut off", [always, silent(3, 2.5, ONLY_AUDIO)], [], { routes: [VIDEO] }],
  ["it leaves out another", [always, running(1, { id: "b", ...ONLY_AUDIO })], [], {
    routes: [AUDIO],
  }],
  ["for too long", [always, running(9, { id: "b", ...ONLY_AUDIO })], [
    "not counted b 06-18",
    "gaps 9 h of 1 h 36 min 06-18",
  ], { routes: [VIDEO] }],

  ["the database's clock is a minute behind", ALWAYS, ["clock behind 06-18"], { lag: MINUTE }],
  ["less than that", ALWAYS, [], { lag: MINUTE - 1 }],

  ["a cache answers", ALWAYS, ["hidden"], {
    probe: { url: "https://a.test", probed: [], hidden: [{ route: AUDIO, reason: "cached" }] },
  }],
  ["for another route", ALWAYS, [], {
    probe: { url: "https://a.test", probed: [], hidden: [{ route: VIDEO, reason: "cached" }] },
  }],

  ["a thirtieth of two days is missing", [stopped(99 * DAYS, 9), running(9 - 1.6)], [
    "gaps 1 h 36 min of 1 h 36 min 06-18",
  ]],
  ["nearly so much", [stopped(99 * DAYS, 9), running(9 - 1.6 + 1 / HOUR)], []],
  ["of thirty days", [stopped(99 * DAYS, 99), running(75)], ["gaps 24 h of 24 h 07-12"], {
    days: 30,
  }],
  ["nearly so much of them", [stopped(99 * DAYS, 99), running(75 + 1 / HOUR)], [], { days: 30 }],
  ["of which some lies before the period", [stopped(99 * DAYS, 61), running(58.5)], []],
  [
    "in several pieces",
    [stopped(99 * DAYS, 40), stopped(39.5, 30), stopped(29.5, 20), running(19.4)],
    ["gaps 1 h 36 min of 1 h 36 min 06-16"],
  ],
  [
    "some of which are the same time",
    [
      ...[stopped(99 * DAYS, 9), stopped(8, 7.5), running(7.5)],
      running(8, { id: "b", lost: before(9) }),
    ],
    [],
  ],
  [
    "what was lost, and what was not counted",
    [
      always,
      running(30, { id: "b", lost: before(31) }),
      stopped(20, 19, ONLY_AUDIO),
    ],
    ["gaps 2 h of 1 h 36 min 06-17"],
    { routes: [VIDEO] },
  ],
  ["a job may have counted nothing for ever", [always, stopped(40, 1, { policies: {} })], []],
  ["a minute for each process that fell silent", [always, ...silentOnes(96)], [
    "gaps 1 h 36 min of 1 h 36 min 06-17",
  ]],
  ["one less", [always, ...silentOnes(95)], []],
  ["they ran on demand", [always, ...silentOnes(200, { onDemand: true })], []],
  ["they fell silent before the period", [
    always,
    ...Array.from({ length: 200 }, (_, index) => silent(99 + index, 90)),
  ], []],
];

for (const [what, sessions, expected, options] of CAUSES) {
  Deno.test(`a verdict is unknown for causes with a day: ${what}`, async () => {
    const routes = sessions.length === 0 || !options?.routes ? [AUDIO] : options.routes;
    const unknown = await report([], sessions, { days: 2, ...options, routes });
    const [verdict] = unknown.verdicts;
    assertEquals(verdict?.causes.map(described), expected);
    assertEquals(unknown.state, expected.length === 0 ? "announced" : "unknown");
    const days = verdict?.causes.map(({ clearFrom }) => clearFrom) ?? [];
    const last = days.includes(undefined) ? undefined : days.toSorted().at(-1);
    assertEquals([verdict?.clearFrom, unknown.clearFrom], [last, last]);
  });
}

Deno.test("a verdict is clear from the day that it names on, if nothing else happens", async () => {
  for (const [what, sessions, causes, options] of CAUSES) {
    const now = await report([], sessions, { days: 2, routes: [AUDIO], ...options });
    const from = now.clearFrom;
    if (causes.length === 0 || from === undefined) continue;
    for (const [day, expected] of [[-1, "unknown"], [0, "clear"]] as const) {
      const then = Date.parse(from) + day * DAYS * HOUR + HOUR;
      if (then <= NOW) continue; // today, if something is done now
      // From now on, one process counts all routes.
      const at = sessions.map((each) =>
        each.reported < NOW ? each : { ...each, ended: "stopped" as const, written: NOW }
      );
      const next = running(0, { id: "next", reported: then, written: then });
      const { state, verdicts } = await report([], [...at, next], {
        ...{ days: 2, routes: [AUDIO], ...options },
        ...{ now: then, lag: 0 },
        started: causes.some((cause) => cause.startsWith("clock")) ? NOW : options?.started,
      });
      const isClear = state !== "unknown";
      assertEquals(
        isClear,
        expected === "clear",
        `${what}: ${from} ${verdicts[0]?.causes.map(described)}`,
      );
    }
  }
});

const called = row(1, "curl", 3, { route: VIDEO });
const CLEAR = running(1000, { policies: { [AUDIO]: UNDATED, [VIDEO]: UNDATED } });
const leavingOut = (route: string) => {
  const [other = ""] = Object.keys(POLICIES).filter((each) => each !== route);
  return running(1, { id: "b", policies: { [other]: UNDATED } });
};

Deno.test("the verdict on all routes is the first that applies to any of them", async () => {
  const dated = (...routes: string[]) => {
    const policies = Object.entries(POLICIES)
      .map(([route, policy]) => [route, routes.includes(route) ? policy : UNDATED]);
    return running(1000, { policies: Object.fromEntries(policies) });
  };
  const rows: [calls: boolean, sessions: Session[], verdicts: string][] = [
    [false, [CLEAR], "clear, clear: clear"],
    [false, [dated(AUDIO)], "announced, clear: announced"],
    [false, [dated(AUDIO, VIDEO)], "announced, announced: announced"],
    [false, [CLEAR, leavingOut(VIDEO)], "clear, unknown: unknown"],
    [false, [dated(AUDIO), leavingOut(VIDEO)], "announced, unknown: unknown"],
    [true, [CLEAR], "clear, called: called"],
    [true, [dated(AUDIO)], "announced, called: called"],
    [true, [CLEAR, leavingOut(AUDIO)], "unknown, called: called"],
    [true, [CLEAR, leavingOut(VIDEO)], "clear, called: called"],
    [true, [stopped(99, 1)], "unknown, called: called"],
    [false, [running(9, { policies: {} })], ": unknown"],
  ];
  for (const [isCalled, sessions, expected] of rows) {
    const { verdicts, state } = await report(isCalled ? [called] : [], sessions);
    assertEquals(`${verdicts.map(({ state }) => state).join(", ")}: ${state}`, expected);
  }
});
