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
const process = String.raw`\(process 4711 on web-1, started at \S+\)`;

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
    /^Clear: no calls to \/v1\/a, \/v1\/b, and \/v1\/c from .*\n\/v1\/a: clear\n\/v1\/b: clear\n\/v1\/c: clear\n/,
  ]],
  ["one was called", called, [always], "clear, called, clear: called", [
    /^Still called: 12 calls to \/v1\/b by 2 clients from 2027-06-08 to .*\n\/v1\/a: clear\n\/v1\/b: called, 12 calls, the last recorded at 2027-06-15T12:00:00Z\n {2}id key-1, 3 calls on 1 day, .*\n {2}id key-2, 9 calls .*\n\/v1\/c: clear\n/,
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
      /\n\/v1\/a: unknown, no calls counted, but 1 process ended or was cut off while answering calls to it\n\/v1\/b: clear\n\/v1\/c: clear\n/,
      RegExp(
        `missing\\.\\n {2}Session s ${process} ended or was cut off while it answered calls to /v1/a; who called from 2027-06-15T03:00:00Z to 2027-06-16T03:00:00Z is not on record \\(see --trust-stops\\)\\n {2}With \`--trust-stops\`, if that is true, this would be clear\\.\\n {2}Without it, the verdict cannot be clear before 2027-06-24\\.\\n`,
      ),
    ],
    { intents: intents.slice(0, 1) },
  ],
  [
    "a server was killed while it answered calls, after calls to another route",
    called,
    [always, silent],
    "unknown, called, unknown: called",
    [
      /\n\/v1\/a: unknown, no calls counted, but 1 process ended or .*\n\/v1\/b: called, 12 calls, .*\n.*\n.*\n\/v1\/c: unknown/,
      RegExp(
        `^Still called: .*\n {2}Session s ${process} ended .* /v1/a; .*\n {2}Session s .* /v1/c; .*\n`,
      ),
      /With `--trust-stops`, if that is true, the unknown routes would be clear\.\n.*\n\/v1\/a: /,
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
      RegExp(
        `\nRoutes are clear on your word that no caller is missing though 1 process ended or was cut off\\.\nTrusted: no caller of /v1/a from 2027-\\S+ to 2027-\\S+ is missing, though session s ${process} ended or was cut off\nTrusted: no caller of /v1/c `,
      ),
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
      /\nRoutes are clear on your word .*\nTrusted: no caller of \/v1\/c .*\nAnnounced until 2027-06-17T00:00:00Z: deleting \/v1\/a and \/v1\/c before /,
    ],
    { intents: intents.slice(1), trustStops: true },
  ],
  [
    "a call is in flight",
    [],
    [always],
    "unknown, clear, clear: unknown",
    [
      /\n\/v1\/a: unknown, no calls counted, but calls to it are in flight\n\/v1\/b: clear\n/,
      RegExp(
        `\n {2}Session a ${process} has calls to /v1/a in flight, or has yet to record them: ask again\n/v1/a: `,
      ),
    ],
    { intents: [intent("a", 1, { route: "/v1/a" })] },
  ],
  [
    "no server runs",
    [],
    [session(1000, 9, ended)],
    "unknown, unknown, unknown: unknown",
    [
      /\n\/v1\/a: unknown, no calls counted, but no server counts it now\n/,
      /missing\.\n {2}No server counts \/v1\/a, \/v1\/b, and \/v1\/c now, and none has since 2027-06-15T03:00:00Z; is this the database that they use\?\n\/v1\/a: /,
    ],
    { trustStops: true },
  ],
  [
    "a server does not count one route",
    called,
    [always, running(9, { id: "x", policies: policiesOf(["/v1/a", "/v1/b"]) })],
    "clear, called, unknown: called",
    [
      RegExp(
        `\n/v1/c: unknown, .*, but session x ${process} does not count /v1/c: deprecate it `,
      ),
    ],
  ],
  [
    "all stopped for an hour, and the record starts in the period",
    [],
    [session(100, 50, ended), running(49, { policies })],
    "unknown, unknown, unknown: unknown",
    [
      /\n\/v1\/a: unknown, no calls counted, but the record starts at 2027-06-11T08:00:00Z; no server was running during 1 stop \(1 h 0 min\)\n/,
      /\n {2}The record starts at 2027-06-11T08:00:00Z\n/,
    ],
  ],
  [
    "all stopped for an hour, on the operator's word",
    called,
    [session(1000, 50, ended), running(49, { policies })],
    "clear, called, clear: called",
    [/\nRoutes are clear on your word that during 1 stop \(1 h 0 min\) .* wrong\.\nTrusted: 2027-/],
    { trustStops: true },
  ],
  ["a cache answers for one route", [], [always], "clear, unknown, clear: unknown", [
    /^Unknown: .*\n\/v1\/a: clear\n\/v1\/b: unknown, no calls counted, but a cache in front of https:\/\/a\.test answers for the servers: exclude this path from it\n\/v1\/c: clear\n/,
  ], {
    probe: {
      url: "https://a.test",
      probed: ["/v1/a", "/v1/c"],
      hidden: [{ route: "/v1/b", reason: "cached" }],
    },
  }],
  ["two clients are ignored", called, [always], "clear, clear, clear: clear", [
    /\n\/v1\/a: clear\n\/v1\/b: clear\n/,
    /\nIgnored: id key-1 \(3 calls\)\nIgnored: id key-2 \(9 calls\)\nIgnored: key-2 \(not on record; did you mean "id key-2"\?\)\nIgnored: nobody \(not on record\)\n/,
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
    /\n\/v1\/things-2\/:id: called, 5 calls, the last recorded at .*\. Sunset: .*\n {2}Client .*\n {2}id key-1 +4 .*\n {2}id key-2 +1 /,
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
