/** Several routes: each has a verdict of its own, which is what `--route` says of it. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { Session, UsageRow } from "../../../lib/usage/record/records.ts";
import type { UsageReportOptions } from "../../../lib/usage/verdict/report.ts";
import { gateText, usageJson, usagePage, usageText } from "../../support/usage_outputs.ts";
import {
  MINUTE,
  NOW,
  report,
  row,
  running,
  silent,
  stopped,
  UNDATED,
} from "../../support/usage_report.ts";

const ROUTES = ["/v1/a", "/v1/b", "/v1/c"] as const;
const policiesOf = (routes: readonly string[]) =>
  Object.fromEntries(routes.map((route) => [route, UNDATED]));
const policies = policiesOf(ROUTES);
const always = running(1000, { policies });
const ended = (began: number, reported: number) => stopped(began, reported, { policies });
const called = [
  row(0, "id key-1", 3, { route: "/v1/b" }),
  row(2, "id key-2", 9, { route: "/v1/b" }),
];
const AND_C = "process 4711 on web-1 counts other routes, and not ";
const MOUNT = ": mount the same routes in every process";
const NO_CALL =
  "no call on record to /v1/a, /v1/b, and /v1/c from 2027-06-08 (as of 2027-06-15T12:00:00Z)";

const PROBE = { url: "https://a.test", probed: ["/v1/c"] };
const ABOVE = "unknown, for the reason above";
const TWELVE = "called, 12 calls, the last recorded at 2027-06-15T12:00:00Z";
const STILL = "Still called: 12 calls to /v1/b by 2 clients from 2027-06-08 (as of " +
  "2027-06-15T12:00:00Z), the last by id key-1 recorded at 2027-06-15T12:00:00Z.";
const countingOnly = (...counted: string[]) =>
  running(1, { id: "x", policies: policiesOf(counted) });

/** What happened, the verdicts, and the gate's lines on all routes and on each. */
const SCENES: readonly (readonly [
  what: string,
  rows: readonly UsageRow[],
  sessions: readonly Session[],
  verdicts: string,
  all: string,
  each: readonly [string, string, string],
  options?: Partial<UsageReportOptions>,
])[] = [
  [
    "nobody called",
    [],
    [always],
    "clear, clear, clear: clear",
    `Clear: ${NO_CALL}.`,
    ["clear", "clear", "clear"],
  ],
  [
    "one was called",
    called,
    [always],
    "clear, called, clear: called",
    STILL,
    ["clear", TWELVE, "clear"],
  ],
  [
    "the clients that called are ignored",
    called,
    [always],
    "clear, clear, clear: clear",
    `Clear: apart from 3 calls by id key-1 and 9 calls by id key-2, ${NO_CALL}.`,
    ["clear", "clear", "clear"],
    { ignore: ["id key-1", "id key-2"] },
  ],
  [
    "no process runs",
    [],
    [ended(1000, 1)],
    "unknown, unknown, unknown: unknown",
    `Unknown: ${NO_CALL}, but no process has counted them since 2027-06-15T11:00:00Z: start one, or check that processes use this database.`,
    [
      ABOVE,
      ABOVE,
      ABOVE,
    ],
  ],
  [
    "a process leaves out one route",
    [],
    [always, countingOnly("/v1/a", "/v1/b")],
    "clear, clear, unknown: unknown",
    `Unknown: ${NO_CALL}, but ${AND_C}/v1/c${MOUNT}.`,
    ["clear", "clear", ABOVE],
  ],
  [
    "two routes, for the same reason",
    [],
    [always, countingOnly("/v1/a")],
    "clear, unknown, unknown: unknown",
    `Unknown: ${NO_CALL}, but ${AND_C}/v1/b and /v1/c${MOUNT}.`,
    ["clear", ABOVE, ABOVE],
  ],
  [
    "the same, beside one that is called",
    called,
    [always, countingOnly("/v1/b")],
    "unknown, called, unknown: called",
    STILL,
    [
      `unknown, because ${AND_C}it${MOUNT}`,
      TWELVE,
      `unknown, because ${AND_C}it${MOUNT}`,
    ],
  ],
  [
    "two routes, each for its own reason",
    [],
    [always, countingOnly("/v1/a", "/v1/b")],
    "clear, unknown, unknown: unknown",
    `Unknown: ${NO_CALL}, but /v1/b and /v1/c are unknown, each for a reason of its own.`,
    [
      "clear",
      "unknown, because a cache in front of https://a.test answers calls to it for the servers: exclude it from the cache",
      `unknown, because ${AND_C}it${MOUNT}`,
    ],
    { probe: { ...PROBE, hidden: [{ route: "/v1/b", reason: "cached" }] } },
  ],
  [
    "a cache answers for two routes",
    [],
    [always],
    "unknown, unknown, clear: unknown",
    `Unknown: ${NO_CALL}, but a cache in front of https://a.test answers calls to /v1/a and /v1/b for the servers: exclude /v1/a and /v1/b from the cache.`,
    [ABOVE, ABOVE, "clear"],
    {
      probe: {
        ...PROBE,
        hidden: [{ route: "/v1/a", reason: "cached" }, { route: "/v1/b", reason: "cached" }],
      },
    },
  ],
  [
    "a route is younger than the others",
    [],
    [{ ...ended(1000, 50), policies: policiesOf(["/v1/a", "/v1/b"]) }, running(50, { policies })],
    "clear, clear, unknown: unknown",
    `Unknown: ${NO_CALL}, but the record of /v1/c starts at 2027-06-13T10:00:00Z; the verdict cannot be clear before 2027-06-21.`,
    ["clear", "clear", ABOVE],
  ],
  [
    "all stopped for a day",
    [],
    [ended(1000, 60), running(36, { policies })],
    "unknown, unknown, unknown: unknown",
    `Unknown: ${NO_CALL}, but 24 h of the 7 days are not on record, and a verdict allows for less than 5 h 36 min: keep a server running; the verdict cannot be clear before 2027-06-21.`,
    [
      ABOVE,
      ABOVE,
      ABOVE,
    ],
  ],
];

for (const [what, rows, sessions, expected, all, each, options] of SCENES) {
  Deno.test(`each route has a verdict of its own: ${what}`, async () => {
    const whole = await report(rows, sessions, options);
    const states = whole.verdicts.map(({ state }) => state).join(", ");
    assertEquals(`${states}: ${whole.state}`, expected);
    const lines = [all, ...ROUTES.map((route, at) => `${route}: ${each[at]}`)];
    assertEquals(gateText(whole).split("\n").slice(0, 4), lines);
    const page = usagePage(whole).replaceAll(/<[^>]*>/g, "");
    for (const line of lines.slice(1)) {
      if (!/\d{4}-/.test(line)) assertStringIncludes(page, `\n${line}\n`);
    }

    // It is what --route says, and what the JSON has.
    const json = JSON.parse(usageJson(whole));
    for (const [at, route] of ROUTES.entries()) {
      const { probe } = options ?? {};
      const hidden = probe?.hidden.filter((each) => each.route === route) ?? [];
      const alone = await report(rows, sessions, {
        ...options,
        routes: [route],
        probe: probe && { ...probe, hidden },
      });
      assertEquals(json.verdicts[at], JSON.parse(usageJson(alone)).verdicts[0]);
      assertEquals([alone.state, alone.clearFrom], [
        whole.verdicts[at]?.state,
        alone.state === "unknown" ? whole.verdicts[at]?.clearFrom : undefined,
      ]);
      assertEquals(gateText(alone).match(/^\/v1/gm), null, "one route has one verdict");
    }
  });
}

Deno.test("a route that is named twice has one verdict, with all of its calls", async () => {
  const twice = await report(called, [always], { routes: ["/v1/b", "/v1/a", "/v1/b"] });
  assertEquals(twice.verdicts.map(({ route, calls }) => [route, calls]), [
    ["/v1/a", 0],
    ["/v1/b", 12],
  ]);
});

Deno.test("a route takes its parts along, and a part stands alone", async () => {
  const names = ["/v1", "/v1 for acme", "/v1/a", "/v10"];
  const sessions = [running(1000, { policies: policiesOf(names) })];
  const rows = [row(1, "id acme", 5, { route: "/v1 for acme" })];
  const asked: [routes: string[], verdicts: string][] = [
    [["/v1"], "/v1 clear, /v1 for acme called"],
    [["/v1 for acme"], "/v1 for acme called"],
    [["/v1 for acme", "/v10"], "/v1 for acme called, /v10 clear"],
    [["/v1", "/v1 for acme"], "/v1 clear, /v1 for acme called"],
  ];
  for (const [routes, expected] of asked) {
    const { verdicts } = await report(rows, sessions, { routes });
    assertEquals(verdicts.map(({ route, state }) => `${route} ${state}`).join(", "), expected);
  }
});

const FORTY = Array.from({ length: 40 }, (_, index) => `/v1/things-${index}/:id`);

Deno.test("forty routes have a line each, and only days with calls", async () => {
  const rows = FORTY.slice(0, 6).flatMap((route, index) => [
    row(3, "id key-1", 2 + index, { route }),
    row(0, `id key-${index}`, 1, { route }),
  ]);
  const processes = [running(1000, { policies: policiesOf(FORTY) })];
  const whole = await report(rows, processes);
  const lines = gateText(whole).split("\n");
  const ofRoutes = lines.filter((line) => /^\/v1\/things-\d+\/:id: (?:clear$|called, )/.test(line));
  assertEquals(ofRoutes.map((line) => line.split(": ")[0]), FORTY);
  assertEquals(lines.filter((line) => line.endsWith(": clear")).length, 34);
  assertMatch(lines[0] ?? "", /^Still called: 33 calls to 6 routes by 6 clients from /);

  const text = usageText(whole);
  const days = text.match(/^ {2}20\d\d-\d\d-\d\d .*/gm) ?? [];
  assertEquals(days.length, 12);
  assert(days.every((line) => /█/.test(line)));
  assertMatch(
    text,
    /\n\/v1\/things-2\/:id: called, 5 calls, .*\n {2}Client .*\n {2}id key-1 +4 .*\n {2}id key-2 +1 /,
  );
  assertMatch(text, /\n\/v1\/things-39\/:id: clear\. Sunset: .*\n/);
  const page = usagePage(whole);
  assertEquals(page.match(/<li><code>\/v1\/things-\d+\/{id}<\/code>: /g)?.length, 40);
  assert(!page.includes("0 calls (brownout"), "a day without calls");
  assertMatch(page, /<h2>.*things-2\/{id}.*<\/h2>[^]*>id key-1<[^]*>id key-2<[^]*<h2>.*things-3\//);
  const few = await report(rows, processes, { routes: FORTY.slice(0, 5) });
  assertMatch(usageText(few), /^ {2}2027-06-11 +0$/m);
});

Deno.test("a report that is kept says as of when it is, and nothing that expires", async () => {
  const worlds = [
    await report([], [always]),
    await report(called, [always, silent(9, 8, { policies })]),
    await report([], [ended(9, 1 / 120)]),
    await report([], [always], { lag: 3 * MINUTE }),
    await report([], [always, silent(9, 8, { policies })], {
      now: NOW + MINUTE / 2,
    }),
    await report([], []),
  ];
  for (const world of worlds) {
    const page = usagePage(world).replaceAll(/<style>[^]*?<\/style>|<[^>]*>/g, "");
    for (const text of [usageText(world), page]) {
      assertEquals(text.match(/\bnow\b|\btoday\b|\bso far\b/g), null);
    }
    assertMatch(usageText(world), /\n\nCalls .* to (\S+) \(.*\nAs of \1\. /);
    assertMatch(page, /8 Jun 2027 to 15 Jun 2027, 12:00 UTC/);
  }
});
