/** What is said of what is not on record, and of why a verdict is unknown. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { Session } from "../../../lib/usage/record/records.ts";
import { PROCESS } from "../../support/counted_call.ts";
import { gateText, usageJson, usagePage, usageText } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  AUDIO,
  before,
  MINUTE,
  POLICY,
  report,
  row,
  running,
  silent as silentUnder,
  stopped as stoppedUnder,
  UNDATED,
  VIDEO,
} from "../../support/usage_report.ts";

const BOTH = { policies: { [AUDIO]: UNDATED, [VIDEO]: UNDATED } };
const ONLY_AUDIO = { policies: { [AUDIO]: UNDATED } };
const ON_DEMAND = { onDemand: true } as const;

const always = running(1000, BOTH);
const at = (pid: number) => ({ process: { ...PROCESS, pid } });
const stopped = (began: number, reported: number, more: Partial<Session> = {}) =>
  stoppedUnder(began, reported, { ...BOTH, ...more });
const silent = (began: number, reported: number, more: Partial<Session> = {}) =>
  silentUnder(began, reported, { ...BOTH, ...more });
const lost = (began: number, lostHours: number, more: Partial<Session> = {}) =>
  running(began, { id: `lost ${began}`, lost: before(lostHours), ...BOTH, ...more });

const NOBODY = "Nobody could call then, unless a process used another database.";
const LOST_IT = "The database lost it, as in a restore or a failover.";
const SIGTERM = "A process that stops with SIGTERM is never named here.";
const MOUNT = "Mount the same routes in every process.";

/** What happened, and what the report says of it; a gate says the lines that are not indented. */
const GAPS: readonly (readonly [
  what: string,
  sessions: readonly Session[],
  lines: readonly string[],
])[] = [
  ["a stop", [stopped(1000, 9), running(8, BOTH)], [
    `Not on record: 2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h), when no process ran. ${NOBODY}`,
  ]],
  [
    "five stops",
    [1000, 9, 8, 7, 6].map((began) => stopped(began, began === 1000 ? 9.5 : began - .75)).concat(
      running(5, BOTH),
    ),
    [
      `Not on record: 1 h 30 min in 5 stops, when no process ran. ${NOBODY}`,
      "  2027-06-15T06:45:00Z to 2027-06-15T07:00:00Z (15 min)",
      "  2027-06-15T05:45:00Z to 2027-06-15T06:00:00Z (15 min)",
      "  2027-06-15T04:45:00Z to 2027-06-15T05:00:00Z (15 min)",
      "  and 2 earlier (45 min)",
    ],
  ],
  ["a stop of one route", [stopped(1000, 9), stopped(9, 8, ONLY_AUDIO), running(8, BOTH)], [
    `Not on record: calls to /video/:token that process 4711 on web-1 may have answered while counting only other routes, from 2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h). ${MOUNT}`,
    "Not on record: 2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h), when no process counted /video/:token. Nobody could call it then, unless a process used another database.",
  ]],
  ["a loss", [stopped(1000, 9, { ended: "continued" }), lost(8, 9.5)], [
    `Not on record: what process 4711 on web-1 recorded from 2027-06-15T02:30:00Z to 2027-06-15T04:00:00Z (1 h 30 min). ${LOST_IT}`,
  ]],
  ["two losses", [always, lost(8, 9), lost(6, 6 + 1 / 60, at(12))], [
    `Not on record: what was recorded before 2 losses, the last until 2027-06-15T06:00:00Z. ${LOST_IT}`,
    "  process 12 on web-1: 2027-06-15T05:59:00Z to 2027-06-15T06:00:00Z (1 min)",
    "  process 4711 on web-1: 2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h)",
  ]],
  ["a process that left a route out", [always, stopped(9, 8, ONLY_AUDIO)], [
    `Not on record: calls to /video/:token that process 4711 on web-1 may have answered while counting only other routes, from 2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h). ${MOUNT}`,
  ]],
  ["twice", [always, stopped(9, 8, ONLY_AUDIO), stopped(7, 6.5, ONLY_AUDIO)], [
    `Not on record: calls to /video/:token that process 4711 on web-1 may have answered while counting only other routes, the last until 2027-06-15T05:30:00Z. ${MOUNT}`,
    "  process 4711 on web-1: 2027-06-15T05:00:00Z to 2027-06-15T05:30:00Z (30 min) (/video/:token)",
    "  process 4711 on web-1: 2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h) (/video/:token)",
  ]],
  ["two that did", [
    always,
    stopped(9, 8, ONLY_AUDIO),
    stopped(7, 6.5, { ...ONLY_AUDIO, ...at(12) }),
  ], [
    `Not on record: calls to /video/:token that 2 processes may have answered while counting only other routes, the last until 2027-06-15T05:30:00Z. ${MOUNT}`,
    "  process 12 on web-1: 2027-06-15T05:00:00Z to 2027-06-15T05:30:00Z (30 min) (/video/:token)",
    "  process 4711 on web-1: 2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h) (/video/:token)",
  ]],
  ["a job", [always, stopped(9, 8, { policies: {} })], [
    "Process 4711 on web-1 mounts no route, as last seen at 2027-06-15T04:00:00Z; it may be a job, or the primary of a cluster.",
  ]],
  ["two jobs", [
    always,
    stopped(9, 8, { policies: {} }),
    running(2, { id: "b", policies: {}, process: { ...PROCESS, machine: undefined } }),
  ], [
    "2 processes mount no route, the last one seen at 2027-06-15T12:00:00Z; they may be jobs, or the primaries of clusters.",
    "  process 4711: 2027-06-15T10:00:00Z to 2027-06-15T12:00:00Z (2 h)",
    "  process 4711 on web-1: 2027-06-15T03:00:00Z to 2027-06-15T04:00:00Z (1 h)",
  ]],
  ["a process that fell silent", [always, silent(9, 8)], [
    `Not on record: what process 4711 on web-1 answered after its last report at 2027-06-15T04:00:00Z; it died, or was cut off. ${SIGTERM}`,
  ]],
  ["five that did", [
    always,
    ...[9, 8, 7, 6, 5].map((began) => silent(began, began - 1, at(began))),
  ], [
    `Not on record: what 5 processes answered after their last reports, the last of them process 5 on web-1 at 2027-06-15T08:00:00Z; they died, or were cut off. ${SIGTERM}`,
    "  process 5 on web-1: after 2027-06-15T08:00:00Z",
    "  process 6 on web-1: after 2027-06-15T07:00:00Z",
    "  process 7 on web-1: after 2027-06-15T06:00:00Z",
    "  and 2 earlier",
  ]],
  ["on demand", [always, silent(9, 8, ON_DEMAND)], [
    "Not on record: what 1 instance answered after its last report at 2027-06-15T04:00:00Z. The platform may end instances without notice.",
  ]],
  ["two on demand, and one that was not", [
    always,
    silent(9, 8, ON_DEMAND),
    silent(8, 7, ON_DEMAND),
    silent(7, 6),
  ], [
    `Not on record: what process 4711 on web-1 answered after its last report at 2027-06-15T06:00:00Z; it died, or was cut off. ${SIGTERM}`,
    "Not on record: what 2 instances answered after their last reports, the last at 2027-06-15T05:00:00Z. The platform may end instances without notice.",
    "  process 4711 on web-1: after 2027-06-15T05:00:00Z",
    "  process 4711 on web-1: after 2027-06-15T04:00:00Z",
  ]],
];

/** Returns a line as a page shows it. */
const onPage = (line: string) =>
  line.trim().replaceAll(":token", "{token}")
    .replaceAll(/2027-06-(\d\d)T(\d\d:\d\d):00Z/g, "$1 Jun 2027, $2 UTC")
    .replaceAll(/2027-06-(\d\d)/g, "$1 Jun 2027");

for (const [what, sessions, lines] of GAPS) {
  Deno.test(`a gap has the same sentences in every output: ${what}`, async () => {
    const whole = await report([], sessions, { days: 2 });
    assert(whole.state !== "called");
    const text = usageText(whole);
    const isOfGap = (line: string) =>
      /^(?:Not on record: | {2}(?:process|2027|and)|.* mounts? no route)/.test(line);
    assertEquals(text.split("\n").filter(isOfGap), lines);
    const short = gateText(whole).split("\n").filter(isOfGap);
    assertEquals(short, lines.filter((line) => !line.startsWith("  ")));
    const page = usagePage(whole).replaceAll(/<\/?[lu][il]>/g, "\n").replaceAll(/<[^>]*>/g, "");
    for (const line of lines) assertStringIncludes(page, `\n${onPage(line)}\n`);
    const { gaps, gapCount } = JSON.parse(usageJson(whole));
    assertEquals([gaps.length, gapCount], [whole.gaps.length, whole.gaps.length]);
    for (const output of [text, gateText(whole), page]) {
      assertEquals(output.match(/complete|trust/i), null);
    }
  });
}

/** What happened, and why the verdict on the last two days is unknown. */
const CAUSES: readonly (readonly [
  what: string,
  sessions: readonly Session[],
  said: string,
  options?: Parameters<typeof report>[2],
])[] = [
  [
    "no process has registered",
    [],
    "no process has counted it yet; the verdict cannot be clear before 2027-06-18",
  ],
  [
    "the record is new",
    [running(3)],
    "the record starts at 2027-06-15T09:00:00Z; the verdict cannot be clear before 2027-06-18",
  ],
  [
    "no process now",
    [stopped(1000, 1)],
    "no process has counted it since 2027-06-15T11:00:00Z: start one, or check that processes use this database",
  ],
  [
    "a process leaves the route out",
    [always, running(1, { id: "b", policies: { [VIDEO]: UNDATED } })],
    "process 4711 on web-1 counts other routes, and not it: mount the same routes in every process",
  ],
  [
    "the clock is behind",
    [always],
    "by the clock of the record it is 2027-06-15T11:55:00Z, though its last report came at 2027-06-15T12:00:00Z: correct the clock if it is wrong; otherwise start a process, which starts the record again; the verdict cannot be clear before 2027-06-18",
    { lag: 5 * MINUTE },
  ],
  [
    "a stop",
    [stopped(1000, 9), running(7, BOTH)],
    "2 h of the 2 days are not on record, and a verdict allows for less than 1 h 36 min: keep a server running; the verdict cannot be clear before 2027-06-18",
  ],
  [
    "processes that fell silent",
    [always, ...Array.from({ length: 50 }, (_, index) => silent(20 + index / 99, 20))],
    "50 min of the day are not on record, counting a minute for each of 50 processes that died or were cut off, and a verdict allows for less than 48 min: find out why they end; the verdict cannot be clear before 2027-06-16",
    { days: 1 },
  ],
  [
    "a stop, and a process that fell silent",
    [stopped(1000, 9), running(7, BOTH), silent(6, 5)],
    "2 h 1 min of the 2 days are not on record, counting a minute for a process that died or was cut off, and a verdict allows for less than 1 h 36 min: keep a server running; the verdict cannot be clear before 2027-06-18",
  ],
  [
    "a loss",
    [always, lost(7, 9)],
    "2 h of the 2 days are not on record, and a verdict allows for less than 1 h 36 min; the verdict cannot be clear before 2027-06-18",
  ],
  [
    "counts that are kept for too short",
    [{ ...always, retainDays: 1 }],
    "USAGE_DAYS=1 keeps fewer than the 2 whole days asked for: raise it, or ask for fewer",
  ],
  [
    "two reasons",
    [stopped(1000, 3)],
    "no process has counted it since 2027-06-15T09:00:00Z: start one, or check that processes use this database; 3 h of the 2 days are not on record, and a verdict allows for less than 1 h 36 min: keep a server running; the verdict cannot be clear before 2027-06-18",
  ],
];

for (const [what, sessions, said, options] of CAUSES) {
  Deno.test(`an unknown verdict says what would help, and when it can be clear: ${what}`, async () => {
    const unknown = await report([], sessions, { days: 2, routes: [AUDIO], ...options });
    const [line = ""] = gateText(unknown).split("\n");
    const [, but] = line.split(" (as of 2027-06-15T12:00:00Z), but ");
    assertEquals(but, `${said}.`);
    assert(usageText(unknown).startsWith(`${line}\n`));
    // On the page, the reason stands alone, and so names the route.
    const page = usagePage(unknown).replaceAll(/<[^>]*>/g, "");
    const none = "Unknown. No call on record to /audio/{token}, but calls may be missing.";
    const reason = onPage(said).replace(/(?<=counted |not )it\b/, "/audio/{token}")
      .replace("the record starts", "the record of /audio/{token} starts");
    assertStringIncludes(page, `\n${none}\n`);
    assertStringIncludes(
      page,
      `\nWhy it is unknown\n${reason.charAt(0).toUpperCase()}${reason.slice(1)}.\n`,
    );
  });
}

Deno.test("a gate has at most five lines on what it leaves out, the weightiest first", async () => {
  const sessions = [
    running(1000, { policies: { [AUDIO]: POLICY } }),
    ...[stopped(9, 8, { policies: {} }), silent(9, 8), silent(8, 7, ON_DEMAND)],
    stopped(7, 6, { policies: { [VIDEO]: UNDATED } }),
    lost(7, 8, { policies: { [AUDIO]: POLICY } }),
  ];
  const rows = [row(9, "id a", 1), row(1, "id b", 1, { status: "404", impact: "none" })];
  const starts = [
    /^Not on record: what process 4711 on web-1 recorded /,
    /^Not on record: calls to \/audio\/:token /,
    /^Process 4711 on web-1 mounts no route/,
    /^Not on record: what process 4711 on web-1 answered /,
    /^Not on record: what 1 instance answered /,
    /^Announced until /,
    /^1 client last called \/audio\/:token before /,
    /^1 other request by 1 client was answered 404: id b$/,
    /^The record starts on /,
    /^The verdict covers /,
  ];
  const whole = await report(rows, sessions, { ignore: ["x", "y", "z", "curl", "d"] });
  const [verdict = "", ...lines] = gateText(whole).split("\n");
  assertMatch(verdict, /^Clear, but announced until /);
  assertEquals(lines.filter((line) => line.startsWith("Ignored: ")).length, 5);
  const others = lines.slice(5);
  assertEquals(others.length, 5);
  for (const [at, line] of others.entries()) {
    assertMatch(line, [...starts.slice(0, 4), ...starts.slice(-1)][at] as RegExp);
  }
  assertStringIncludes(
    others[4] ?? "",
    " The report has 5 more lines on what the verdict leaves out.",
  );
  const all = usageText(whole).split("\n");
  const found = starts.map((start) => all.findIndex((line) => start.test(line)));
  assert(found.every((at) => at > 0), `${found}`);
  assertEquals(found.toSorted((a, b) => a - b), found);
});

Deno.test("the JSON has the latest thousand gaps, and their number", async () => {
  const many = Array.from(
    { length: 1_200 },
    (_, index) => silent(900 - index / 10, 800 - index / 10, ON_DEMAND),
  );
  const whole = await report([], [always, ...many], { routes: [AUDIO] });
  const { gaps, gapCount } = JSON.parse(usageJson(whole));
  assertEquals([gaps.length, gapCount], [1_000, 1_200]);
  const starts = gaps.map(({ start }: { start: string }) => start);
  assertEquals(starts, whole.gaps.slice(-1_000).map(({ start }) => new Date(start).toISOString()));
  assertMatch(gateText(whole), /\nNot on record: what 1,200 instances answered /);
  assertEquals((await report([], ALWAYS)).gaps, []);
});
