import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { RefusedError } from "../../../lib/errors/refused_error.ts";
import { definePolicy } from "../../../lib/lifecycle/policy_settings.ts";
import { phasesText } from "../../../lib/usage/output/client_sentences.ts";
import { textOf } from "../../../lib/usage/output/phrase.ts";
import type { Session } from "../../../lib/usage/record/records.ts";
import type { Doubt } from "../../../lib/usage/verdict/doubts.ts";
import { PROCESS } from "../../support/counted_call.ts";
import { gateText, usageJson, usageText } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  DAY,
  HOUR,
  intent,
  NOW,
  POLICIES,
  POLICY,
  report,
  row,
  ROWS,
  running,
  session,
} from "../../support/usage_report.ts";

const COVERED =
  "The verdict covers the calls that reached the servers. A cache in front may hide " +
  "others: set PUBLIC_URL, and the gate checks for one.";
const NOT_PROBED =
  " No probe has shown that calls to /video/:token are counted: call it once, and find " +
  "the call in the report.";
const NEITHER_PROBED = NOT_PROBED.replace("to /video", "to /audio/:token and /video")
  .replace("call it", "call each");
/** What every clear verdict of a record without rare callers leaves out. */
const LEFT_OUT = [
  "Announced until 2027-06-17T00:00:00Z: deleting /audio/:token and /video/:token before then breaks the " +
  "announcement.",
  "On record since 2027-05-04: what comes more rarely is not on it.",
];
const stopped = { id: "b", ended: "stopped" } as const;
const serve = { mayServeUnrecorded: true } as const;
const settled = (hoursAgo: number) => ({ settled: NOW - hoursAgo * HOUR });

Deno.test("reportUsage() sums a period by day, route and client", async () => {
  const { from, today, routes, clients, ...rest } = await report(ROWS, ALWAYS);
  assertEquals([from, today], ["2027-06-08", "2027-06-15"]);
  assertEquals(
    routes.map(({ route, calls, otherRequests }) => [route, calls, otherRequests]),
    [["/audio/:token", 36, 12], ["/video/:token", 60, 0]],
  );
  assertEquals(routes[0]?.days.map(({ calls }) => calls), [30, 5, 0, 0, 0, 0, 0, 1]);
  assertEquals(routes[0]?.days[1]?.byPhase, { brownout: 5 });
  assertEquals(clients, [
    {
      client: "curl",
      calls: 60,
      days: 1,
      first: "2027-06-10",
      last: NOW - 5 * DAY,
      routes: ["/video/:token"],
      phases: { deprecated: 60 },
      brownouts: [],
      releases: [],
    },
    {
      client: "Overcast",
      calls: 36,
      days: 3,
      first: "2027-06-08",
      last: NOW,
      routes: ["/audio/:token"],
      phases: { deprecated: 31, brownout: 5 },
      brownouts: [{ start: "2027-06-09T09:00:00Z", status: 410, calls: 5 }],
      releases: [],
    },
  ]);
  assertEquals(rest.completeSince, NOW - 1000 * HOUR);
});

Deno.test("the gate leaves out ignored clients and allows some calls, but never what it cannot know", async () => {
  const rows = [row(0, "app monitor", 50), row(0, "app curl", 3), row(1, "site a.test", 2)];
  const gap = [session(1000, 30, stopped), running(29)];
  const options = [
    [{}, "called"],
    [{ ignore: ["app monitor"] }, "called"],
    [{ ignore: ["app monitor"], atMost: 4 }, "called"],
    [{ ignore: ["app monitor"], atMost: 5 }, "clear"],
    [{ ignore: ["monitor"], atMost: 5 }, "called"],
    [{ atMost: 55 }, "clear"],
    [{ ignore: ["app monitor", "app curl", "site a.test", "nobody"] }, "clear"],
  ] as const;
  for (const [option, expected] of options) {
    const what = JSON.stringify(option);
    const whole = await report(rows, ALWAYS, { days: 2, ...option });
    assertEquals(whole.verdict.state, expected, what);
    const partial = await report(rows, gap, { days: 2, ...option });
    assertEquals(partial.verdict.state, expected === "clear" ? "unknown" : expected, what);
  }
  const text = gateText(
    await report(rows, ALWAYS, { days: 2, ignore: ["app monitor", "monitor", "x"], atMost: 5 }),
  );
  assertEquals(text.split("\n"), [
    "Clear: 5 calls to /audio/:token and /video/:token, at most 5 allowed, from 2027-06-13 to" +
    " 2027-06-15T12:00:00Z (2 whole days and part of 2027-06-15, UTC), and the record is complete.",
    "/audio/:token: clear, 5 calls, at most 5 allowed",
    "  app curl, 3 calls on 1 day, last recorded at 2027-06-15T12:00:00Z (deprecated)",
    "  site a.test, 2 calls on 1 day, last recorded at 2027-06-14T12:00:00Z (deprecated)",
    "/video/:token: clear",
    ...LEFT_OUT,
    "Ignored: app monitor (50 calls)",
    'Ignored: monitor (not on record; did you mean "app monitor"?)',
    "Ignored: x (not on record)",
    COVERED + NOT_PROBED,
  ]);
});

Deno.test("the report says in which brownouts a client called, the middle one of a day, too", async () => {
  const inBrownout = (hour: number, calls: number) =>
    row(5, "app a", calls, { phase: "brownout", brownout: `2027-06-10T${hour}:00:00Z` });
  const { clients } = await report(
    [inBrownout(14, 2), inBrownout(12, 3), row(3, "app a", 1)],
    ALWAYS,
  );
  assertEquals(clients.map(({ phases }) => phases), [{ brownout: 5, deprecated: 1 }]);
  assertEquals(clients.map((usage) => textOf(phasesText(usage))), [
    "deprecated; 3 calls in the brownout of 2027-06-10T12:00:00Z; " +
    "2 calls in the brownout of 2027-06-10T14:00:00Z",
  ]);
});

Deno.test("a report and its gate agree on period boundaries", async () => {
  // Two whole days and today: the period starts at midnight, 60 hours ago.
  const rows: [what: string, hoursAgo: number, verdict: string][] = [
    ["the first moment", 60, "called"],
    ["the moment before", 60 + 1 / HOUR, "clear"],
    ["exactly two days ago", 48, "called"],
    ["just now", 0, "called"],
    ["tomorrow, by a database's clock that was ahead", -13, "called"],
  ];
  for (const [what, hoursAgo, expected] of rows) {
    const called = row(hoursAgo / 24, "curl", 1);
    const { verdict, clients, routes } = await report([called], ALWAYS, { days: 2 });
    assertEquals(verdict.state, expected, what);
    const shown = expected === "called" ? 1 : 0;
    const inTable = routes.flatMap(({ days }) => days).reduce((sum, { calls }) => sum + calls, 0);
    assertEquals([clients.length, inTable], [shown, shown], what);
  }
});

Deno.test("the report takes the dates from the record, and lists others beside them", async () => {
  const other = definePolicy({ deprecatedAt: "2027-01-01" });
  const servers = [
    running(1000, { id: "b", policies: { ...POLICIES, "/video/:token": other } }),
    running(900),
    session(800, 700, { id: "c", policies: { "/audio/:token": other }, ended: "stopped" }),
    session(700, 600, { id: "d", policies: { "/audio/:token": other }, ended: "stopped" }),
  ];
  const lines = gateText(await report([], servers)).split("\n").slice(5);
  assertEquals(lines, [
    "/video/:token announces deprecation 2027-01-01T00:00:00Z, sunset 2027-06-17T00:00:00Z, brownout " +
    "2027-06-10T09:00:00Z/2027-06-10T17:00:00Z; but session b (process 4711 on web-1, started at 2027-01-31T12:00:00Z): " +
    "deprecation 2027-01-01T00:00:00Z, no sunset",
    COVERED + NEITHER_PROBED,
  ]);
  assertEquals(JSON.parse(usageJson(await report([], servers))).otherDates, lines.slice(0, 1));
  const changed = { "/audio/:token": other, "/video/:token": other };
  const both = await report([], [running(1000, { id: "b", policies: changed }), running(900)]);
  assertEquals(both.otherDates.map(({ routes }) => routes), [["/audio/:token", "/video/:token"]]);
  assertMatch(gateText(both), /\n\/audio\/:token, \/video\/:token announce deprecation /);
  const { policies } = await report([], servers);
  assertEquals(policies["/video/:token"]?.sunsetAt, POLICY.sunsetAt);
  assertEquals(policies["/audio/:token"]?.sunsetAt, POLICY.sunsetAt, "of a server that runs");
});

Deno.test("a verdict is on the routes that servers announce, or on those given, and names them", async () => {
  const [audio, video] = ["/audio/:token", "/video/:token"] as const;
  const only = (route: keyof typeof POLICIES) => ({ [route]: POLICIES[route] });
  const calls = [row(1, "curl", 3, { route: video })];
  const is = (policies: Partial<typeof POLICIES>) => running(1000, { policies });
  const ended = (policies: Partial<typeof POLICIES>) => session(999, 9, { ...stopped, policies });
  const rows: [
    what: string,
    sessions: Session[],
    verdict: string,
    judged: string[],
    routes?: string[],
  ][] = [
    ["both", [is(POLICIES)], "called", [audio, video]],
    ["the line of one deleted", [is(only(audio)), ended(POLICIES)], "clear", [audio]],
    ["the same, beside an old server", [is(only(audio)), is(POLICIES)], "called", [audio, video]],
    ["both lines deleted", [is({}), ended(POLICIES)], "unknown", []],
    ["no server any more", [ended(POLICIES)], "called", [audio, video]],
    ["one that is called", [is(POLICIES)], "called", [video], [video]],
    ["one that is not called, beside one that is", [is(POLICIES)], "clear", [audio], [audio]],
  ];
  for (const [what, sessions, expected, judged, routes] of rows) {
    const called = await report(calls, sessions, { routes });
    assertEquals([called.verdict.state, called.judged], [expected, judged], what);
    const line = /^[A-Z].*/m.exec(gateText(called))?.[0] ?? "";
    if (expected === "called") assertMatch(line, / 3 calls to \/video\/:token by 1 client from /);
    if (judged.length === 0) assertMatch(line, /^Unknown: no server deprecates a route/);
  }
  const wrong = () => report([], [is(POLICIES)], { routes: ["/audio"] });
  await assertRejects(
    wrong,
    RefusedError,
    'route "/audio" was never counted, expected "/audio/:token" or "/video/:token"',
  );
});

Deno.test("requests of probes are no calls, and have a line of their own", async () => {
  const rows = [row(1, "probe a", 5, { impact: "none" }), row(0, "probe b", 4, { impact: "none" })];
  const quiet = await report(rows, ALWAYS);
  assertEquals([quiet.verdict.state, quiet.routes[0]?.otherRequests], ["clear", 0]);
  assertStringIncludes(gateText(quiet), "\nNot counted as calls: 9 requests by 2 probes\n");
  assert(!gateText(await report([], ALWAYS)).includes("Not counted"), "nothing is said of nobody");
});

Deno.test("a clear verdict says on whose word it rests", async () => {
  const process = "process 4711 on web-1, started at 2027-01-31T12:00:00Z";
  const sessions = [
    session(1000, 150, { id: "a", timeline: "7-0" }),
    session(150, 50, { id: "b" }),
    session(49, 30, { id: "c", process: { ...PROCESS, pid: 1 }, ...serve }),
    running(28, { id: "d" }),
  ];
  const intents = [intent("b", 50, settled(50)), intent("c", 31, { route: "/video/:token" })];
  const clear = await report([], sessions, { trustStops: true, intents });
  const text = gateText(clear);
  assertMatch(
    text,
    /^Clear, on your word that during 2 stops \(3 h 0 min\) nothing else served, nothing was lost or restored, and no clock was wrong, and that no call was lost in a restore or failover, and that no caller is missing though 2 processes ended or were cut off, and that 1 process served no unrecorded calls: no calls to /m,
  );
  const trusted = [
    "2027-06-13T10:00:00Z to 2027-06-13T11:00:00Z (1 h 0 min) without a server",
    "2027-06-14T06:00:00Z to 2027-06-14T08:00:00Z (2 h 0 min) without a server",
    "no call was lost when the database was restored or failed over between 2027-06-09T06:00:00Z and " +
    "2027-06-09T06:00:00Z",
    "no caller of /audio/:token from 2027-06-13T10:00:00Z to 2027-06-14T13:00:00Z is missing, though " +
    `session b (${process}) ended or was cut off`,
    "no caller of /video/:token from 2027-06-14T05:00:00Z to 2027-06-15T07:00:00Z is missing, though " +
    `session c (${process.replace("4711", "1")}) ended or was cut off`,
    `session c (${
      process.replace("4711", "1")
    }) served no unrecorded calls after 2027-06-14T06:00:00Z`,
  ];
  assertEquals(
    text.split("\n").filter((line) => line.startsWith("Trusted: ")),
    trusted.map((each) => `Trusted: ${each}`),
  );
  assertStringIncludes(
    text,
    "\nThe verdict rests on no process having served calls that are not on record: the application " +
      'may serve without its record (unrecorded: "serve").\n',
  );
  const json = JSON.parse(usageJson(clear));
  assertEquals(json.trusted.map(({ reason }: { reason: string }) => reason), [
    ...["stop", "stop", "restored", "intent", "intent", "unrecorded"],
  ]);
  assertEquals(json.trusted[3], {
    reason: "intent",
    session: "b",
    process: { ...PROCESS, started: "2027-01-31T12:00:00.000Z" },
    route: "/audio/:token",
    start: "2027-06-13T10:00:00.000Z",
    until: "2027-06-14T13:00:00.000Z",
    isOpen: false,
  });
  assertEquals(json.servedUnrecorded, ["/audio/:token", "/video/:token"]);
});

Deno.test("a verdict rests on unrecorded calls for as long as a process may have served some", async () => {
  const rows: [what: string, sessions: Session[], expected: boolean][] = [
    ["nobody serves them", ALWAYS, false],
    ["one may", [running(1000, serve)], true],
    ["one might have, and closed its record before the period", [
      running(1000),
      session(900, 800, { ...stopped, ...serve }),
    ], false],
    ["one might have, and was killed before the period", [
      running(1000),
      session(900, 800, { id: "b", ...serve }),
    ], true],
  ];
  for (const [what, sessions, expected] of rows) {
    const { verdict, servedUnrecorded } = await report([], sessions);
    assertEquals([verdict.state, servedUnrecorded.length > 0], ["clear", expected], what);
  }
});

Deno.test("a clear verdict says what a probe showed", async () => {
  const url = "https://media.example.com";
  const lineFor = async (probed: string[]) =>
    gateText(await report([], ALWAYS, { probe: { url, probed, hidden: [] } })).split("\n").at(-1);
  const covered = "The verdict covers the calls that reached the servers. ";
  assertEquals(
    await lineFor(["/audio/:token"]),
    `${covered}A probe of /audio/:token through ${url} found no cache that hides others.` +
      NOT_PROBED,
  );
  assertEquals(await lineFor([]), `${covered}A cache in front may hide others.${NEITHER_PROBED}`);
  assertEquals(
    await lineFor(["/audio/:token", "/video/:token"]),
    `${covered}A probe of /audio/:token and /video/:token through ${url} found no cache that hides others.`,
  );
});

Deno.test("an unknown verdict says what would help, and when it can be clear", async () => {
  const stop = [session(1000, 30, stopped), running(29)]; // it ends on 14 June, 07:00
  const old = [session(1000, 150, stopped), running(149)]; // it ends on 9 June, 07:00
  const killed = [running(1000), session(900, 8, { id: "s" })];
  const rows: [
    what: string,
    sessions: Session[],
    reasons: string[],
    left: string[],
    clearFrom: string | undefined,
    options?: Parameters<typeof report>[2],
  ][] = [
    ["a stop of yesterday", stop, ["stop"], [], "2027-06-22"],
    ["an older stop", old, ["stop"], [], "2027-06-17"],
    ["never counted", [], ["started"], ["started"], undefined],
    ["calls that may be missing until tomorrow", killed, ["intent"], [], "2027-06-24", {
      intents: [intent("s", 9)],
    }],
    [
      "the same, and a call in flight",
      killed,
      ["in flight", "intent"],
      ["in flight"],
      undefined,
      { intents: [intent("s", 9), intent("a", 9)] },
    ],
    ["a call in flight", killed, ["in flight"], ["in flight"], undefined, {
      intents: [intent("a", 9)],
    }],
    [
      "a stop, and no server now",
      [session(1000, 30, stopped), session(29, 1)],
      ["no server", "stop"],
      ["no server"],
      undefined,
    ],
    ["days deleted before they are asked for", stop, ["stop"], [], undefined, { retainDays: 6 }],
    [
      "a stop on the first day of the record",
      [session(3, 2, stopped), running(1)],
      ["started", "stop"],
      ["started"],
      "2027-06-23",
    ],
    ["a record that starts again tomorrow", ALWAYS, ["started"], ["started"], "2027-06-24", {
      started: NOW + DAY,
    }],
  ];
  const reasonsOf = (doubts: readonly Doubt[] = []) => doubts.map(({ reason }) => reason);
  for (const [what, sessions, reasons, left, clearFrom, options = {}] of rows) {
    const { unknown, recovery } = await report([], sessions, { retainDays: 7, ...options });
    assertEquals(reasonsOf(unknown?.doubts).toSorted(), reasons, what);
    assertEquals([reasonsOf(unknown?.left), recovery], [left, clearFrom], what);
  }
  // It is as said.
  const { recovery } = await report([], old);
  const from = Date.parse(recovery ?? "");
  for (const [now, expected] of [[from - HOUR, "unknown"], [from + HOUR, "clear"]] as const) {
    const later = running(149, { reported: now + 1 });
    const { verdict } = await report([], [old[0] as Session, later], { now });
    assertEquals(verdict.state, expected);
  }
  assertEquals((await report([], old, { days: 5 })).verdict.state, "clear");
  assertEquals((await report([], old, { days: 6 })).verdict.state, "unknown");
});

Deno.test("the report adds up the releases of the period, and the apps of other clients", async () => {
  const of = (daysAgo: number, client: string, release: string, calls: number) =>
    row(daysAgo, client, calls, { release });
  const rows = [
    of(0, "app a", "2.0", 3),
    of(5, "app a", "2.0", 2),
    of(5, "app a", "1.0", 6),
    of(1, "app a", "", 9),
    of(8, "app a", "0.9", 9), // before the period
    of(1, "app b", "1.0", 2),
    of(1, "id c", "okhttp", 1),
  ];
  const whole = await report(rows, ALWAYS);
  const expected = [
    { release: "1.0", calls: 6, last: NOW - 5 * DAY },
    { release: "2.0", calls: 5, last: NOW },
  ];
  const [a, b] = whole.clients;
  assertEquals([a?.calls, a?.releases, b?.releases.length], [20, expected, 1]);
  const { clients } = JSON.parse(usageJson(whole));
  assertEquals(clients[0].releases[0], { ...expected[0], last: "2027-06-10T12:00:00.000Z" });
  assertMatch(
    usageText(whole),
    /Phases {6}Releases or apps\n {2}app a .* {2}1\.0 \(6 calls\), 2\.0 \(5\)\n {2}app b .* deprecated {2}1\.0\n {2}id c .* {2}okhttp\n/,
  );
  const one = await report(rows, ALWAYS, { client: "app b" });
  assertEquals(one.clients.map(({ client }) => client), ["app b"]);
  assertMatch(usageText(one), / {2}Releases or apps\n {2}app b .* deprecated {2}1\.0\n/);
  const text = gateText(whole);
  assertMatch(
    text,
    /\n {2}app a, 20 calls on 3 days, .* \(deprecated\), releases 1\.0 \(6 calls\), 2\.0 \(5\)\n/,
  );
  assertMatch(text, /\n {2}app b, .* \(deprecated\), release 1\.0\n/);
  assertMatch(text, /\n {2}id c, .* \(deprecated\), app okhttp\n/);

  const many = Array.from({ length: 60 }, (_, index) => of(1, "app a", `1.${index}`, 1 + index));
  const manyText = usageText(await report(many, ALWAYS));
  assertMatch(manyText, / 1\.59 \(60 calls\), 1\.58 \(59\), .*, 1\.35 \(36\), and 35 more\n/);
});
