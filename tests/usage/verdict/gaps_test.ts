/** What is not on record, by the times of sessions. */

import { assertEquals } from "@std/assert";
import type { Session } from "../../../lib/usage/record/records.ts";
import type { Gap } from "../../../lib/usage/verdict/gaps.ts";
import {
  AUDIO,
  before,
  MINUTE,
  NOW,
  ONLY_AUDIO,
  report,
  row,
  running,
  silent,
  stopped,
  VIDEO,
} from "../../support/usage_report.ts";

const [SECOND, DAYS] = [1 / 3600, 24];
const NONE = { policies: {} };
const ON_DEMAND = { onDemand: true } as const;
/** Makes a session that goes on in another one. */
const continued = (began: number, reported: number, more: Partial<Session> = {}) =>
  stopped(began, reported, { ended: "continued", opened: "it", ...more });
const always = running(100 * DAYS);

/** Describes a gap by its hours before now, and its routes if they are not all. */
function described({ kind, routes, start, end, weighs }: Gap): string {
  const at = (instant: number) => Math.round((NOW - instant) / MINUTE / 60 * 100) / 100;
  const ofWhich = routes.length === 2 ? "" : ` ${routes}`;
  const until = end === undefined ? "" : ` to ${at(end)}`;
  return `${kind}${ofWhich} ${at(start)}${until}${weighs ? "" : ", only named"}`;
}

/** What happened, and the gaps that a verdict on the last two days names. */
const ROWS: readonly (readonly [
  what: string,
  sessions: readonly Session[],
  gaps: readonly string[],
  options?: Parameters<typeof report>[2],
])[] = [
  ["one process, always", [always], []],
  ["nothing", [], []],

  // Stops
  ["a stop of a minute", [stopped(9 * DAYS, 9), running(9 - 1 / 60)], ["stop 9 to 8.98"]],
  ["of less", [stopped(9 * DAYS, 9), running(9 - 1 / 60 + SECOND / 999)], []],
  ["a handover", [stopped(9 * DAYS, 8), running(9)], []],
  ["two stops", [stopped(9 * DAYS, 9), stopped(8, 7), running(6)], [
    "stop 9 to 8",
    "stop 7 to 6",
  ]],
  ["a short process beside a long one", [stopped(9 * DAYS, 2), stopped(9, 8), running(3)], []],
  ["the only process stopped", [stopped(9 * DAYS, 3)], ["stop 3 to 0"]],
  ["just now", [stopped(9 * DAYS, 1 / 61)], []],
  ["the only process fell silent", [silent(9 * DAYS, 3)], ["stop 3 to 0", "silent 3"]],
  ["the machine slept", [continued(9 * DAYS, 9), running(8, { opened: "it" })], ["stop 9 to 8"]],
  ["no process mounted any route meanwhile", [
    stopped(9 * DAYS, 9),
    stopped(9, 8, NONE),
    running(8),
  ], [
    "stop 9 to 8",
    "not counted 9 to 8, only named",
  ]],
  ["a stop until the period begins", [stopped(9 * DAYS, 70), running(60)], []],
  ["until after that", [stopped(9 * DAYS, 70), running(60 - SECOND)], ["stop 70 to 60"]],
  ["on demand", [stopped(9 * DAYS, 9, ON_DEMAND), running(8, ON_DEMAND)], []],
  ["on demand, and none now", [stopped(9 * DAYS, 9, ON_DEMAND)], []],
  ["on demand from then on", [stopped(9 * DAYS, 9), running(8, ON_DEMAND)], ["stop 9 to 8"]],
  ["on demand until then", [stopped(9 * DAYS, 9, ON_DEMAND), running(8)], []],

  // Losses
  ["a restore", [continued(9 * DAYS, 9), running(8.99, { opened: "it", lost: before(9.5) })], [
    "lost 9.5 to 8.99",
  ]],
  [
    "what a restore took is no stop",
    [continued(9 * DAYS, 9), running(8, { opened: "it", lost: before(9) })],
    ["lost 9 to 8"],
  ],
  ["but for the time before", [stopped(9 * DAYS, 9), running(7, { lost: before(8) })], [
    "stop 9 to 7",
    "lost 8 to 7",
  ]],
  [
    "whatever the process counts",
    [always, running(8, { id: "b", lost: before(9), ...ONLY_AUDIO })],
    ["lost 9 to 8", `not counted ${VIDEO} 8 to 0`],
  ],
  ["before the period", [always, running(70, { id: "b", lost: before(80) })], []],

  // Routes that are left out
  ["a process leaves one out", [always, stopped(9, 8, ONLY_AUDIO)], [
    `not counted ${VIDEO} 9 to 8`,
  ]],
  ["and still does", [always, running(9, { id: "b", ...ONLY_AUDIO })], [
    `not counted ${VIDEO} 9 to 0`,
  ]],
  ["until it mounts it late", [
    always,
    continued(9, 8.9, ONLY_AUDIO),
    running(8.8, { id: "b", opened: "it" }),
  ], [`not counted ${VIDEO} 9 to 8.8`]],
  ["and then falls silent", [always, silent(9, 8, ONLY_AUDIO)], [
    `not counted ${VIDEO} 9 to 8`,
    "silent 8",
  ]],
  ["and stops at once", [always, stopped(9, 9, ONLY_AUDIO)], []],
  ["a process left it out before anybody counted it", [
    stopped(9 * DAYS, 9, ONLY_AUDIO),
    running(9),
  ], []],
  ["the same, and once more", [
    stopped(9 * DAYS, 9, ONLY_AUDIO),
    running(9),
    stopped(8, 7, ONLY_AUDIO),
  ], [`not counted ${VIDEO} 8 to 7`]],
  ["a process mounts none for a minute", [always, stopped(9, 9 - 1 / 60, NONE)], [
    "not counted 9 to 8.98, only named",
  ]],
  ["for less", [always, stopped(9, 9 - 1 / 61, NONE)], []],
  [
    "a process that counted a route slept over the start of the record",
    [
      continued(9 * DAYS, 40),
      running(20, { opened: "it" }),
    ],
    [],
    { started: before(30) },
  ],

  // Silence
  ["a process fell silent", [always, silent(9, 8)], ["silent 8"]],
  ["within a minute", [always, silent(9, 1 / 61)], []],
  ["right after it began", [always, silent(9, 9)], ["silent 9"]],
  ["whatever it counted", [always, silent(9, 8, NONE)], [
    "not counted 9 to 8, only named",
    "silent 8",
  ]],
  ["within a minute, without a route", [always, silent(9, 9 - 1 / 61, NONE)], []],
  ["on demand, it weighs nothing", [always, silent(9, 8, ON_DEMAND)], ["silent 8, only named"]],
  ["thirty days before the period", [always, silent(90 * DAYS, 60 + 30 * DAYS)], ["silent 780"]],
  ["longer ago", [always, silent(90 * DAYS, 60 + 30 * DAYS + SECOND)], []],
  ["it stopped with a word", [always, stopped(9, 8)], []],
  ["it is the same process that goes on", [
    always,
    continued(9, 8),
    running(8, {
      id: "b",
      opened: "it",
    }),
  ], []],

  // How far back
  [
    "as far back as a client's rhythm",
    [stopped(99 * DAYS, 70 * DAYS), silent(70 * DAYS - 1, 40 * DAYS), running(40 * DAYS - 1)],
    [`stop ${AUDIO} 1680 to 1679`, `stop ${AUDIO} 960 to 959`, `silent ${AUDIO} 960`],
    { isByRhythm: true },
  ],
  [
    "or not",
    [stopped(99 * DAYS, 70 * DAYS), silent(70 * DAYS - 1, 31 * DAYS), running(31 * DAYS - 1)],
    ["silent 744"],
  ],
];

/** A client that calls every 80 days, and is not due. */
const RARE = [90, 170, 250].map((daysAgo) => row(daysAgo, "id a", 1));

for (const [what, sessions, expected, options] of ROWS) {
  Deno.test(`a verdict names its gaps: ${what}`, async () => {
    const { gaps, verdicts } = await report(RARE, sessions, { days: 2, ...options });
    assertEquals(gaps.map(described), expected);
    // What is said of all routes is said of each.
    for (const { route, gaps: own } of verdicts) {
      const shared = gaps.filter(({ routes }) => routes.includes(route));
      assertEquals(
        own.map(({ start, end }) => [start, end]),
        shared.map(({ start, end }) => [start, end]),
      );
      const alone = await report(RARE, sessions, { days: 2, routes: [route], ...options });
      assertEquals(alone.gaps, own);
    }
  });
}

Deno.test("a gap says of which process it is, and a stop of none", async () => {
  const { gaps } = await report([], [stopped(99, 9), silent(8, 7), running(7)], { days: 2 });
  assertEquals(gaps.map(({ session, process }) => [session, process?.pid]), [
    [undefined, undefined],
    ["silent 8", 4711],
  ]);
});
