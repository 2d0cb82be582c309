/** The report of a period: what was counted, and what is said beside the verdict. */

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
import { gateText, usageJson, usageText } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  DAY,
  HOUR,
  NOW,
  POLICIES,
  POLICY,
  report,
  row,
  ROWS,
  running,
  silent,
  stopped,
} from "../../support/usage_report.ts";

const COVERED =
  "The verdict covers the calls that reached the servers. A cache in front may hide " +
  "others: set PUBLIC_URL, and the gate checks for one.";
const NOT_PROBED =
  " No probe has shown that calls to /video/:token are counted: call it once, and find " +
  "the call in the report.";
const NEITHER_PROBED = NOT_PROBED.replace("to /video", "to /audio/:token and /video")
  .replace("call it", "call each");

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
  assertEquals([rest.asOf, rest.onRecordSince], [NOW, NOW - 1000 * HOUR]);
});

Deno.test("the gate leaves out ignored clients, but never what it cannot know", async () => {
  const rows = [row(0, "app monitor", 50), row(0, "app curl", 3), row(1, "site a.test", 2)];
  const gap = [stopped(1000, 30), running(26)];
  const options = [
    [[], "called"],
    [["app monitor"], "called"],
    [["app monitor", "app curl"], "called"],
    [["monitor", "app curl", "site a.test"], "called"],
    [["app monitor", "app curl", "site a.test", "nobody"], "announced"],
  ] as const;
  for (const [ignore, expected] of options) {
    const what = ignore.join(", ");
    const whole = await report(rows, ALWAYS, { days: 2, ignore });
    assertEquals(whole.state, expected, what);
    const partial = await report(rows, gap, { days: 2, ignore });
    assertEquals(partial.state, expected === "announced" ? "unknown" : expected, what);
  }
  const ignore = ["app monitor", "app curl", "monitor", "site a.test", "x"];
  const whole = await report(rows, ALWAYS, { days: 2, ignore });
  assertEquals(gateText(whole).split("\n"), [
    "Clear, but announced until 2027-06-17T00:00:00Z: apart from 50 calls by app monitor, 3 calls by" +
    " app curl, and 2 calls by site a.test, no call on record to /audio/:token and /video/:token from" +
    " 2027-06-13 (as of 2027-06-15T12:00:00Z).",
    "/audio/:token: clear, but announced until 2027-06-17T00:00:00Z",
    "/video/:token: clear, but announced until 2027-06-17T00:00:00Z",
    'Ignored: monitor (not on record; did you mean "app monitor"?)',
    "Ignored: x (not on record)",
    "Announced until 2027-06-17T00:00:00Z: deleting /audio/:token and /video/:token before then breaks" +
    " the announcement.",
    "The record starts on 2027-05-04: a client that calls more rarely may not be on it.",
    COVERED,
  ]);
  assertMatch(
    usageText(whole),
    /\nIgnored: app monitor \(50 calls\)\nIgnored: app curl \(3 calls\)\nIgnored: monitor \(.*\n/,
  );
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
    ["the moment before", 60 + 1 / HOUR, "announced"],
    ["exactly two days ago", 48, "called"],
    ["just now", 0, "called"],
    ["tomorrow, by a database's clock that was ahead", -13, "called"],
  ];
  for (const [what, hoursAgo, expected] of rows) {
    const called = row(hoursAgo / 24, "curl", 1);
    const { state, clients, routes } = await report([called], ALWAYS, { days: 2 });
    assertEquals(state, expected, what);
    const shown = expected === "called" ? 1 : 0;
    const inTable = routes.flatMap(({ days }) => days).reduce((sum, { calls }) => sum + calls, 0);
    assertEquals([clients.length, inTable], [shown, shown], what);
  }
});

Deno.test("the report takes the dates from the record, and lists others beside them", async () => {
  const other = definePolicy({ deprecatedAt: "2027-01-01" });
  const processes = [
    running(1000, { id: "b", policies: { ...POLICIES, "/video/:token": other } }),
    running(900),
    stopped(800, 700, { policies: { "/audio/:token": other } }),
    stopped(700, 600, { policies: { "/audio/:token": other } }),
  ];
  const line = "/video/:token announces deprecation 2027-01-01T00:00:00Z, sunset " +
    "2027-06-17T00:00:00Z, brownout 2027-06-10T09:00:00Z/2027-06-10T17:00:00Z; but session b " +
    "(process 4711 on web-1, started at 2027-01-31T12:00:00Z): deprecation 2027-01-01T00:00:00Z, no " +
    "sunset";
  const whole = await report([], processes);
  assertStringIncludes(usageText(whole), `\n${line}\n`);
  assertEquals(JSON.parse(usageJson(whole)).otherDates, [line]);
  const changed = { "/audio/:token": other, "/video/:token": other };
  const both = await report([], [running(1000, { id: "b", policies: changed }), running(900)]);
  assertEquals(both.otherDates.map(({ routes }) => routes), [["/audio/:token", "/video/:token"]]);
  assertMatch(usageText(both), /\n\/audio\/:token, \/video\/:token announce deprecation /);
  const { policies } = whole;
  assertEquals(policies["/video/:token"]?.sunsetAt, POLICY.sunsetAt);
  assertEquals(policies["/audio/:token"]?.sunsetAt, POLICY.sunsetAt, "of a process that runs");
});

Deno.test("a verdict is on the routes that processes announce, or on those given, and names them", async () => {
  const [audio, video] = ["/audio/:token", "/video/:token"] as const;
  const only = (route: keyof typeof POLICIES) => ({ [route]: POLICIES[route] });
  const calls = [row(1, "curl", 3, { route: video })];
  const is = (policies: Partial<typeof POLICIES>) =>
    running(1000, { id: `is ${Object.keys(policies)}`, policies });
  const ended = (policies: Partial<typeof POLICIES>) => stopped(999, 9, { policies });
  const rows: [
    what: string,
    sessions: Session[],
    verdict: string,
    judged: string[],
    routes?: string[],
  ][] = [
    ["both", [is(POLICIES)], "called", [audio, video]],
    ["the line of one deleted", [is(only(audio)), ended(POLICIES)], "announced", [audio]],
    ["the same, beside an old one", [is(only(audio)), is(POLICIES)], "called", [audio, video]],
    ["none was ever counted", [is({})], "unknown", []],
    ["one that is called", [is(POLICIES)], "called", [video], [video]],
    ["one that is not called, beside one that is", [is(POLICIES)], "announced", [audio], [audio]],
  ];
  for (const [what, sessions, expected, judged, routes] of rows) {
    const called = await report(calls, sessions, { routes });
    assertEquals([called.state, called.judged], [expected, judged], what);
    const [line = ""] = gateText(called).split("\n");
    if (expected === "called") assertMatch(line, / 3 calls to \/video\/:token by 1 client from /);
    if (judged.length === 0) assertMatch(line, /^Unknown: no process counts a deprecated route/);
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
  assertEquals([quiet.state, quiet.routes[0]?.otherRequests], ["announced", 0]);
  assertStringIncludes(usageText(quiet), "\nNot counted as calls: 9 requests by 2 probes\n");
  assert(!usageText(await report([], ALWAYS)).includes("Not counted"), "nothing is said of nobody");
});

Deno.test("a clear verdict says what a probe showed", async () => {
  const url = "https://media.example.com";
  const covered = "The verdict covers the calls that reached the servers. ";
  const rows: [probed: string[], said: string, more: string][] = [
    [
      ["/audio/:token"],
      `A probe of /audio/:token through ${url} found no cache that hides others.`,
      NOT_PROBED,
    ],
    [[], "A cache in front may hide others.", NEITHER_PROBED],
    [
      ["/audio/:token", "/video/:token"],
      `A probe of /audio/:token and /video/:token through ${url} found no cache that hides others.`,
      "",
    ],
  ];
  for (const [probed, said, more] of rows) {
    const whole = await report([], ALWAYS, { probe: { url, probed, hidden: [] } });
    assertEquals(gateText(whole).split("\n").at(-1), covered + said);
    assertStringIncludes(usageText(whole), `\n${covered}${said}${more}\n`);
  }
  const other = [row(1, "scanner", 1, { status: "404", impact: "none", route: "/video/:token" })];
  const shown = await report(other, ALWAYS, {
    probe: { url, probed: ["/audio/:token"], hidden: [] },
  });
  assert(!usageText(shown).includes("No probe has shown"), "other requests show it, too");
});

Deno.test("a day is on record unless a thirtieth of it is missing", async () => {
  const ONLY_VIDEO = { policies: { "/video/:token": POLICY } };
  const silentOnes = (count: number) =>
    Array.from({ length: count }, (_, index) => silent(90, 70, { id: `${index}` }));
  type Options = Parameters<typeof report>[2];
  const rows: [what: string, sessions: Session[], days: string, options?: Options][] = [
    ["all of them", ALWAYS, "11111111"],
    ["nothing", [], "00000000"],
    ["before the record", [running(100)], "00001111"],
    ["it began 47 minutes after midnight", [running(84 - 47 / 60)], "00001111"],
    ["48 minutes after", [running(84 - 48 / 60)], "00000111"],
    ["it started again", ALWAYS, "00000011", { started: NOW - 36 * HOUR }],
    ["a stop of 48 minutes", [stopped(1000, 70), running(70 - .8)], "11110111"],
    ["of less", [stopped(1000, 70), running(70 - .799)], "11111111"],
    ["over midnight", [stopped(1000, 84.7), running(83.3)], "11111111"],
    ["of days", [stopped(1000, 130), running(70)], "11000111"],
    ["no process since", [stopped(1000, 40)], "11111000"],
    ["on demand", [stopped(1000, 40, { onDemand: true })], "11111111"],
    ["calls were lost", [
      stopped(1000, 70, { ended: "continued" }),
      running(69.9, { lost: NOW - 71 * HOUR }),
    ], "11110111"],
    ["a process left the route out", [...ALWAYS, stopped(70, 69, ONLY_VIDEO)], "11110111"],
    ["many processes fell silent", [...ALWAYS, ...silentOnes(48)], "11110111"],
    ["one less", [...ALWAYS, ...silentOnes(47)], "11111111"],
  ];
  for (const [what, sessions, expected, options] of rows) {
    const routes = ["/audio/:token"];
    const { routes: [usage] } = await report([], sessions, { routes, ...options });
    const days = usage?.days.map(({ isOnRecord }) => Number(isOnRecord)).join("");
    assertEquals(days ?? "00000000", expected, what);
  }
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
  const many = Array.from({ length: 60 }, (_, index) => of(1, "app a", `1.${index}`, 1 + index));
  const manyText = usageText(await report(many, ALWAYS));
  assertMatch(manyText, / 1\.59 \(60 calls\), 1\.58 \(59\), .*, 1\.35 \(36\), and 35 more\n/);
});

Deno.test("reportUsage() refuses a client that is not on record, and knows one from before", async () => {
  const rows = [...ROWS, row(40, "app PocketPlayer", 1), row(1, "site a.test", 1)];
  const refused: [client: string, said: string][] = [
    ["overcast", "use the report's name"],
    ["PocketPlayer", 'did you mean "app PocketPlayer"?'],
    ["a.test", 'did you mean "site a.test"?'],
  ];
  for (const [client, said] of refused) {
    const unknown = () => report(rows, ALWAYS, { client });
    await assertRejects(unknown, RefusedError, `No client "${client}" on record; ${said}`);
  }
  assertEquals((await report(ROWS, ALWAYS, { client: "Forgotten" })).clients, []);
});
