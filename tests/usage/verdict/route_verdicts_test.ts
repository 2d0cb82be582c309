/** The verdict on each route, beside that on all of them. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Session, UsageRow } from "../../../lib/usage/record/records.ts";
import type { UsageReportOptions } from "../../../lib/usage/verdict/report.ts";
import { callsIn, type ClientUsage } from "../../../lib/usage/verdict/sums.ts";
import { gateText, usageJson, usagePage, usageText } from "../../support/usage_outputs.ts";
import {
  ALWAYS,
  intent,
  MINUTE,
  NOW,
  POLICY,
  report,
  row,
  running,
  session,
} from "../../support/usage_report.ts";

const ROUTES = ["/v1/a", "/v1/b", "/v1/c"] as const;
const policiesOf = (routes: readonly string[]) =>
  Object.fromEntries(routes.map((route) => [route, POLICY]));
const policies = policiesOf(ROUTES);
const always = running(1000, { policies });
const silent = session(9, 8, { id: "s", policies });
const ended = { id: "e", policies, ended: "stopped" } as const;
const intents = [intent("s", 9, { route: "/v1/a" }), intent("s", 9, { route: "/v1/c" })];
const called = [
  row(0, "id key-1", 3, { route: "/v1/b" }),
  row(2, "id key-2", 9, { route: "/v1/b" }),
];

/** What happened, the verdicts on the routes and on all of them, and what the gate says. */
const SCENES: readonly (readonly [
  what: string,
  rows: readonly UsageRow[],
  sessions: readonly Session[],
  verdicts: string,
  said: readonly RegExp[],
  options?: Partial<UsageReportOptions>,
])[] = [
  ["nobody called", [], [always], "clear, clear, clear: clear", [
    /^Clear: .*\n\/v1\/a: clear\n\/v1\/b: clear\n\/v1\/c: clear\n/,
  ]],
  ["one was called", called, [always], "clear, called, clear: called", [
    /^Still called: .*\n\/v1\/a: clear\n\/v1\/b: called, 12 calls, .*\n {2}id key-1, 3 calls on 1 day, .*\n {2}id key-2, 9 calls .*\n\/v1\/c: clear\n/,
  ]],
  ["some calls are allowed", called, [always], "clear, clear, clear: clear", [
    /\n\/v1\/b: clear, 12 calls, at most 12 allowed\n {2}id key-1, 3 calls /,
  ], { atMost: 12 }],
  [
    "each route has fewer calls than are allowed, but not all together",
    [...called, row(1, "id key-1", 5, { route: "/v1/c" })],
    [always],
    "clear, called, called: called",
    [/^Still called: 17 calls to .*\n\/v1\/a: clear\n\/v1\/b: called, 12 .*\n.*\n.*\n\/v1\/c: called, 5 calls, /],
    { atMost: 12 },
  ],
  ["a server was killed while nobody called", [], [always, silent], "clear, clear, clear: clear", [
    /^Clear: .*\n\/v1\/a: clear\n\/v1\/b: clear\n\/v1\/c: clear\n/,
  ]],
  [
    "a server was killed while it answered calls to one route",
    [],
    [always, silent],
    "unknown, clear, clear: unknown",
    [
      /^Unknown: .*\n {2}Session s .* \/v1\/a;.*\n(?: {2}.*\n)*\/v1\/a: unknown, .*\n\/v1\/b: clear\n\/v1\/c: clear\n/,
    ],
    { intents: intents.slice(0, 1) },
  ],
  [
    "a server was killed while it answered calls, after calls to another route",
    called,
    [always, silent],
    "unknown, called, unknown: called",
    [
      /\n\/v1\/a: unknown, .*\n\/v1\/b: called, 12 calls, .*\n.*\n.*\n\/v1\/c: unknown/,
      /^Still called: .*\n {2}Session s .* \/v1\/a; .*\n {2}Session s .* \/v1\/c; .*\n/,
    ],
    { intents },
  ],
  [
    "the same, on the operator's word",
    called,
    [always, silent],
    "clear, called, clear: called",
    [
      /^Still called: .*\n\/v1\/a: clear on your word\n\/v1\/b: called, .*\n.*\n.*\n\/v1\/c: clear on your word\n/,
      /\nRoutes are clear on your word .*\nTrusted: .* \/v1\/a .*\nTrusted: .* \/v1\/c /,
    ],
    { intents, trustStops: true },
  ],
  [
    "the word is needed for one route only",
    called,
    [always, silent],
    "clear, called, clear: called",
    [
      /\n\/v1\/a: clear\n\/v1\/b: called, .*\n.*\n.*\n\/v1\/c: clear on your word\n/,
      /\nRoutes are clear on your word .*\nTrusted: .* \/v1\/c .*\nAnnounced until 2027-06-17T.* \/v1\/a and \/v1\/c /,
    ],
    { intents: intents.slice(1), trustStops: true },
  ],
  [
    "a call is in flight",
    [],
    [always],
    "unknown, clear, clear: unknown",
    [
      /\n {2}Session a .* \/v1\/a .*\n\/v1\/a: unknown, .*\n\/v1\/b: clear\n/,
    ],
    { intents: [intent("a", 1, { route: "/v1/a" })] },
  ],
  [
    "no server runs",
    [],
    [session(1000, 9, ended)],
    "unknown, unknown, unknown: unknown",
    [
      /^Unknown: .*\n {2}.* \/v1\/a, \/v1\/b, and \/v1\/c .*\n\/v1\/a: unknown, /,
    ],
    { trustStops: true },
  ],
  [
    "a server does not count one route",
    called,
    [always, running(9, { id: "x", policies: policiesOf(["/v1/a", "/v1/b"]) })],
    "clear, called, unknown: called",
    [
      /\n\/v1\/c: unknown, .* session x .* \/v1\/c: /,
    ],
  ],
  [
    "all stopped for an hour, and the record starts in the period",
    [],
    [session(100, 50, ended), running(49, { policies })],
    "unknown, unknown, unknown: unknown",
    [
      /\n\/v1\/a: unknown, .* 2027-06-11T08:00:00Z; .* 1 stop \(1 h 0 min\)\n/,
    ],
  ],
  [
    "all stopped for an hour, on the operator's word",
    called,
    [session(1000, 50, ended), running(49, { policies })],
    "clear, called, clear: called",
    [/\nRoutes are clear on your word .* 1 stop .*\nTrusted: 2027-/],
    { trustStops: true },
  ],
  ["a cache answers for one route", [], [always], "clear, unknown, clear: unknown", [
    /^Unknown: .*\n\/v1\/a: clear\n\/v1\/b: unknown, .*\n\/v1\/c: clear\n/,
  ], {
    probe: {
      url: "https://a.test",
      probed: ["/v1/a", "/v1/c"],
      hidden: [{ route: "/v1/b", reason: "cached" }],
    },
  }],
  ["two clients are ignored", called, [always], "clear, clear, clear: clear", [
    /\n\/v1\/a: clear\n\/v1\/b: clear\n/,
    /\nIgnored: id key-1 .*\nIgnored: id key-2 .*\nIgnored: key-2 .*"id key-2".*\nIgnored: nobody .*\n/,
  ], { ignore: ["id key-1", "id key-2", "key-2", "nobody"] }],
];

for (const [what, rows, sessions, expected, said, options] of SCENES) {
  Deno.test(`each route has a verdict of its own: ${what}`, async () => {
    const whole = await report(rows, sessions, options);
    const verdicts = whole.verdicts.map(({ state }) => state).join(", ");
    assertEquals(`${verdicts}: ${whole.verdict.state}`, expected);
    const text = gateText(whole);
    for (const each of said) assertMatch(text, each);
    // It is what --route says, and what the JSON has.
    const json = JSON.parse(usageJson(whole));
    assertEquals(json.verdicts.map(({ route }: { route: string }) => route), ROUTES);
    assert(!("unknown" in json));
    for (const [at, route] of ROUTES.entries()) {
      if (options?.atMost !== undefined && whole.verdict.state === "called") break;
      const { probe } = options ?? {};
      const hidden = probe?.hidden.filter((each) => each.route === route) ?? [];
      const alone = await report(rows, sessions, {
        ...options,
        routes: [route],
        probe: probe && { ...probe, hidden },
      });
      const of = JSON.parse(usageJson(alone));
      assertEquals(json.verdicts[at], of.verdicts[0]);
      const { route: _, calls, clients, ...verdict } = json.verdicts[at];
      for (const [name, value] of Object.entries(verdict)) assertEquals(value, of[name], name);
      const callers = alone.clients.map(({ client, calls }) => [client, calls]);
      assertEquals(clients.map((each: ClientUsage) => [each.client, each.calls]), callers);
      assertEquals(calls, callsIn(alone.clients));
      assertEquals(gateText(alone).match(/^\/v1/gm), null, "one route has one verdict");
    }
  });
}

Deno.test("a route that is named twice has one verdict, with all of its calls", async () => {
  const twice = await report(called, [always], { routes: ["/v1/b", "/v1/a", "/v1/b"] });
  assertEquals(twice.verdicts.map(({ route, calls }) => [route, calls]), [
    ["/v1/b", 12],
    ["/v1/a", 0],
  ]);
});

const FORTY = Array.from({ length: 40 }, (_, index) => `/v1/things-${index}/:id`);

Deno.test("forty routes have a line each, and only days with calls", async () => {
  const rows = FORTY.slice(0, 6).flatMap((route, index) => [
    row(3, "id key-1", 2 + index, { route }),
    row(0, `id key-${index}`, 1, { route }),
  ]);
  const servers = [running(1000, { policies: policiesOf(FORTY) })];
  const whole = await report(rows, servers);
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
  assertEquals(page.match(/<li>\/v1\/things-\d+\/{id}: /g)?.length, 40);
  assert(!page.includes("0 calls (brownout"), "a day without calls");
  assertMatch(page, /<h2>.*things-2\/{id}.*<\/h2>[^]*>id key-1<[^]*>id key-2<[^]*<h2>.*things-3\//);
  const few = await report(rows, servers, { routes: FORTY.slice(0, 5) });
  assertMatch(usageText(few), /^ {2}2027-06-11 +0$/m);
});

Deno.test("a report that is kept says when it was made, and nothing that expires", async () => {
  const worlds = [
    await report([], ALWAYS),
    await report(called, [always, silent]),
    await report([], [session(9, 1 / 120)]),
    await report([], [session(9, 8, { reported: NOW + MINUTE })], { lag: 3 * MINUTE }),
    await report([], []),
  ];
  for (const world of worlds) {
    const page = usagePage(world).replaceAll(/<style>[^]*?<\/style>|<[^>]*>/g, "");
    for (const text of [usageText(world), page]) {
      // "or now" is a word of the command line.
      assertEquals(text.replaceAll("or now if", "").match(/\bnow\b|\btoday\b|\bso far\b/g), null);
    }
    assertMatch(usageText(world), /\n\nCalls .* to (\S+) \(.*\nMade at \1\. /);
    assertMatch(page, /Made at 15 Jun 2027, 12:0\d UTC\./);
  }
});
