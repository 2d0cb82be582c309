/** What reports say of the extensions of clients: the verdict's announcement, text, JSON and pages. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { Extensions } from "../../../lib/lifecycle/extension.ts";
import { extensionLines } from "../../../lib/usage/output/extension_sentences.ts";
import { textOf } from "../../../lib/usage/output/phrase.ts";
import { ownerPage } from "../../../lib/usage/output/owner_page.ts";
import type { Session } from "../../../lib/usage/record/records.ts";
import { gateText, usageJson, usagePage, usageText } from "../../support/usage_outputs.ts";
import {
  DAY,
  HOUR,
  NOW,
  POLICY,
  report,
  row,
  running,
  session,
} from "../../support/usage_report.ts";

const [AUDIO, VIDEO] = ["/audio/:token", "/video/:token"];
const at = (text: string) => Date.parse(text);
const [JUNE, SEPTEMBER, DECEMBER] = ["2027-06-20", "2027-09-30", "2027-12-31"].map(at) as [
  number,
  number,
  number,
];

/** A policy whose sunset passed a month ago. */
const PAST = { ...POLICY, sunsetAt: NOW - 30 * DAY, brownouts: [] };

/** Servers that have been counting for weeks, with extensions of the first route. */
const announcing = (extensions: Extensions, more: Partial<Session> = {}) => [
  running(1000, { extensions: { [AUDIO]: extensions }, ...more }),
];

const announced = (until: string, clients: string, routes = AUDIO) =>
  `Announced until ${until} for ${clients}: deleting ${routes} before then breaks the announcement.`;
/** Until when, to whom and of which route a text says that something is announced. */
const announcements = (text: string) => {
  const lines = text.matchAll(/^Announced until (\S+?)(?: for (.*?))?: deleting (\S+) /gm);
  return Array.from(lines, ([, until, clients = "all", route]) => [until, clients, route]);
};
const neverCalled = (clients: string, routes = AUDIO) =>
  `No call to ${routes} by ${clients} is on record: an extension goes by the id that ` +
  "`client` returns before the handler is called.";
const ended = (until: string, clients: string, routes = AUDIO) =>
  `No longer announced for ${clients}: the extension of ${routes} ended at ${until}.`;

const [LATE_SEPTEMBER, LATE_DECEMBER] = [SEPTEMBER, DECEMBER].map((instant) =>
  new Date(instant).toISOString().replace(".000", "")
) as [string, string];

/** Extensions by route, who has called, and what is said. */
const SAID: [
  what: string,
  extensions: Record<string, Extensions>,
  callers: [client: string, daysAgo: number, route?: string][],
  lines: string[],
][] = [
  ["none", {}, [], []],
  ["one", { [AUDIO]: { acme: DECEMBER } }, [["id acme", 1]], [
    announced(LATE_DECEMBER, "id acme"),
  ]],
  ["a client that called before the period", { [AUDIO]: { acme: DECEMBER } }, [["id acme", 30]], [
    announced(LATE_DECEMBER, "id acme"),
  ]],
  ["a client that never called", { [AUDIO]: { acme: DECEMBER } }, [["app acme", 1]], [
    announced(LATE_DECEMBER, "id acme"),
    neverCalled("id acme"),
  ]],
  ["a client that never called this route", { [AUDIO]: { acme: DECEMBER } }, [
    ["id acme", 1, VIDEO],
  ], [announced(LATE_DECEMBER, "id acme"), neverCalled("id acme")]],
  [
    "several clients",
    { [AUDIO]: { zeta: DECEMBER, acme: DECEMBER, beta: SEPTEMBER } },
    [["id acme", 1], ["id beta", 1], ["id zeta", 1]],
    [announced(LATE_SEPTEMBER, "id beta"), announced(LATE_DECEMBER, "id acme, id zeta")],
  ],
  [
    "the same on several routes",
    { [AUDIO]: { acme: DECEMBER }, [VIDEO]: { acme: DECEMBER } },
    [],
    [
      announced(LATE_DECEMBER, "id acme", `${AUDIO} and ${VIDEO}`),
      neverCalled("id acme", `${AUDIO} and ${VIDEO}`),
    ],
  ],
  [
    "many clients",
    { [AUDIO]: Object.fromEntries([..."abcdefg"].map((id) => [id, DECEMBER])) },
    [..."abcdefg"].map((id) => [`id ${id}`, 1]),
    [announced(LATE_DECEMBER, "id a, id b, id c, id d, id e, and 2 more clients")],
  ],
  ["names of objects", { [AUDIO]: { constructor: DECEMBER, ["__proto__"]: DECEMBER } }, [], [
    announced(LATE_DECEMBER, "id __proto__, id constructor"),
    neverCalled("id __proto__, id constructor"),
  ]],
  ["a route that is not mounted", { "/other": { acme: DECEMBER } }, [], []],
];

for (const [what, extensions, callers, lines] of SAID) {
  Deno.test(`text, gate and pages name extensions, and who never called: ${what}`, async () => {
    const rows = callers.map(([client, daysAgo, route = AUDIO]) =>
      row(daysAgo, client, 3, { route })
    );
    const made = await report(rows, [running(1000, { extensions })]);
    assertEquals(extensionLines(made).map(textOf), lines);
    const page = usagePage(made);
    for (const text of [usageText(made), gateText(made)]) {
      for (const line of lines) assertStringIncludes(text, `\n${line}\n`);
    }
    assertEquals(
      page.match(/<li>(Announced until|No call to|No longer) /g)?.length ?? 0,
      [
        ...lines,
        ...made.verdicts.some(({ state }) => state === "clear") ? ["the sunset"] : [],
      ].length,
    );
  });
}

Deno.test("many extensions are listed up to 25 lines", async () => {
  const each = Array.from({ length: 30 }, (_, day) => [`c${day}`, DECEMBER + day * DAY]);
  const rows = each.map(([id]) => row(1, `id ${id}`, 1));
  const made = await report(rows, announcing(Object.fromEntries(each)));
  const lines = extensionLines(made).map(textOf);
  assertEquals([lines.length, lines[0], lines.at(-1)], [
    26,
    announced(LATE_DECEMBER, "id c0"),
    "and 5 more, which --json lists",
  ]);
});

Deno.test("an extension that has ended is named, and announced no longer", async () => {
  const policies = { [AUDIO as string]: PAST };
  const sessions = announcing({ old: NOW - DAY, acme: NOW, beta: NOW + 1000 }, { policies });
  const made = await report([row(9, "id beta", 1)], sessions);
  assertEquals(extensionLines(made).map(textOf), [
    announced("2027-06-15T12:00:01Z", "id beta"),
    ended("2027-06-14T12:00:00Z", "id old"),
    ended("2027-06-15T12:00:00Z", "id acme"),
  ]);
  assertEquals(made.announcedUntil, NOW + 1000);
});

Deno.test("a route is announced until the last extension ends, whoever is silent", async () => {
  const past = { policies: { [AUDIO as string]: PAST } };
  const until = async (sessions: Session[], options = {}) => {
    const made = await report([], sessions, options);
    assertEquals(made.verdict.state, "clear");
    return [made.announcedUntil, made.verdicts[0]?.announcedUntil];
  };
  assertEquals(await until([running(1000, past)]), [undefined, undefined]);
  assert(!gateText(await report([], [running(1000, past)])).includes("Announced"));
  assertEquals(await until(announcing({ acme: NOW - 1 }, past)), [undefined, undefined]);
  assertEquals(await until(announcing({ a: DECEMBER, b: JUNE }, past)), [DECEMBER, DECEMBER]);
  assertEquals(
    await until(announcing({ a: DECEMBER }, { policies: { [AUDIO as string]: POLICY } })),
    [
      DECEMBER,
      DECEMBER,
    ],
  );
  const text = gateText(await report([], announcing({ a: DECEMBER })));
  const [sunset, own] = ["2027-06-17T00:00:00Z:", `${LATE_DECEMBER} for id a:`].map((end) =>
    text.indexOf(`Announced until ${end} deleting `)
  );
  assert(sunset !== -1 && own !== -1, text);
});

Deno.test("a client that was extended and calls is one that the removal breaks", async () => {
  const made = await report([row(0, "id acme", 5)], announcing({ acme: DECEMBER }), {
    routes: [AUDIO as string],
  });
  assertEquals([made.verdict.state, made.verdicts[0]?.state], ["called", "called"]);
  const text = gateText(made);
  assertMatch(text, /^Still called: .* the last by id acme recorded at /);
  assertStringIncludes(text, `\n${announced(LATE_DECEMBER, "id acme")}\n`);
});

Deno.test("a client has called if its first call was recorded while the report was made", async () => {
  const rows = [row(0, "id acme", 1)];
  const made = await report(rows, announcing({ acme: DECEMBER }), { before: [] });
  assertEquals(made.extensions.map(({ isOnRecord }) => isOnRecord), [true]);
});

Deno.test("usageJson() lists extensions with their facts", async () => {
  const sessions = announcing({ acme: DECEMBER, old: NOW - 1000 });
  const json = JSON.parse(usageJson(await report([row(30, "id acme", 1)], sessions)));
  assertEquals(json.extensions, [
    {
      route: AUDIO,
      client: "id acme",
      until: "2027-12-31T00:00:00.000Z",
      isExpired: false,
      isOnRecord: true,
    },
    {
      route: AUDIO,
      client: "id old",
      until: "2027-06-15T11:59:59.000Z",
      isExpired: true,
      isOnRecord: false,
    },
  ]);
  assertEquals([json.announcedUntil, json.policies[AUDIO as string].sunsetAt], [
    "2027-12-31T00:00:00.000Z",
    "2027-06-17T00:00:00.000Z",
  ]);
});

Deno.test("extensions are those of the session whose policy counts", async () => {
  const untilOf = async (...sessions: Session[]) =>
    (await report([], sessions)).extensions.map(({ until }) => until);
  const extensions = (end: number) => ({ extensions: { [AUDIO as string]: { acme: end } } });
  const stopped = { ended: "stopped" } as const;
  const before = running(1000, { id: "a", ...extensions(JUNE) });
  const later = (more: Partial<Session>) => running(9, { id: "b", ...more });
  assertEquals(await untilOf(before, later(extensions(DECEMBER))), [DECEMBER]);
  assertEquals(await untilOf(before, later({})), []);
  assertEquals(await untilOf(before, later({ policies: {}, ...extensions(DECEMBER) })), [JUNE]);
  assertEquals(
    await untilOf(before, session(9, 8, { id: "b", ...stopped, ...extensions(DECEMBER) })),
    [JUNE],
  );
  assertEquals(await untilOf(session(1000, 9, { ...stopped, ...extensions(JUNE) })), [JUNE]);
});

Deno.test("servers that announce other extensions are named", async () => {
  const with_ = (id: string, own: Extensions) =>
    running(9, { id, extensions: { [AUDIO as string]: own } });
  const lines = async (...sessions: Session[]) => {
    const made = await report([], sessions);
    return JSON.parse(usageJson(made)).otherDates as string[];
  };
  assertEquals(await lines(with_("a", { x: 5, y: 6 }), with_("b", { y: 6, x: 5 })), []);
  const [line, ...others] = await lines(
    running(10, { id: "a" }),
    with_("b", { acme: DECEMBER, beta: SEPTEMBER }),
  );
  assertEquals(others, []);
  assertMatch(
    String(line),
    /^\/audio\/:token announces .* sunset 2027-09-30T00:00:00Z for id beta, sunset 2027-12-31T00:00:00Z for id acme; but session a .*\/2027-06-10T17:00:00Z$/,
  );
});

/** A report on one client, from a server where two have extensions. */
async function reportOn(client: string, policy = POLICY) {
  const policies = { [AUDIO as string]: policy };
  const sessions = [
    running(1000, { policies, extensions: { [AUDIO as string]: { acme: DECEMBER, beta: JUNE } } }),
    running(9, { id: "b", policies, extensions: { [AUDIO as string]: { acme: DECEMBER } } }),
  ];
  const rows = ["id acme", "id beta", "app acme"].map((client) => row(1, client, 4));
  const made = await report(rows, sessions, { client });
  return { made, page: ownerPage(made, { sessions, publicUrl: "https://api.example.com" }) };
}

Deno.test("the page of a client that has an extension shows its own date, without brownouts", async () => {
  for (const policy of [POLICY, PAST]) {
    const { made, page } = await reportOn("id acme", policy);
    const [, by = "", rest = ""] = page.split(/<h2>/);
    assertStringIncludes(by, '<time datetime="2027-12-31T00:00:00Z">31 Dec 2027, 00:00 UTC</time>');
    assertStringIncludes(by, "this one is for acme alone.");
    assert(!/17 Jun|16 May|rownout/.test(by), by);
    assertStringIncludes(rest, "Calls by acme");
    assertStringIncludes(page, "acme still calls paths of api.example.com that will be removed");
    assertStringIncludes(usageText(made), "Sunset: 2027-12-31T00:00:00Z.");
    assertEquals(made.announcedUntil, DECEMBER);
    assert(!/beta/.test(page + usageText(made) + usageJson(made)), "nothing of the others");
    assertEquals(
      usageText(made).split(LATE_DECEMBER).length - 1,
      2,
      "said once, and as the sunset",
    );
  }
});

/** Holds until a day, over the sunset of all, and what the client reads whose own is on 20 June. */
const HELD_UNTIL: [until: string, sunset: string, isItsOwn: boolean, moved: string | undefined][] =
  [
    ["2027-06-18", "2027-06-20", true, undefined],
    ["2027-06-25", "2027-06-25", false, "2027-06-20"],
  ];

Deno.test("the page of a client that has an extension says what a hold did for this client", async () => {
  const sessions = announcing({ acme: JUNE });
  for (const [until, sunset, isItsOwn, moved] of HELD_UNTIL) {
    const since = POLICY.brownouts[0]?.start as number; // called off for the others
    const hold = { id: "a", route: undefined, released: undefined, because: "billing is down" };
    const holds = [{ ...hold, since, until: at(until) }];
    const made = await report([row(1, "id acme", 4)], sessions, {
      client: "id acme",
      routes: [AUDIO as string],
      holds,
    });
    const page = ownerPage(made, { sessions });
    const [, by = ""] = page.split(/<h2>/);
    assertStringIncludes(by, `<dt>Removal</dt>\n<dd><time datetime="${sunset}T00:00:00Z">`);
    assertMatch(by, /<li>Held until .* \(billing is down\)/);
    assertEquals(by.includes("this one is for acme alone"), isItsOwn, until);
    for (const text of [by, usageText(made)]) {
      assert(!/17 Jun|2027-06-17|the brownout/.test(text), text);
      assertEquals(text.includes("put off"), moved !== undefined, text);
    }
    assertStringIncludes(usageText(made), `held until ${until}T00:00:00Z (billing is down)`);
  }
});

Deno.test("a report names the sunset of all, even where a hold ends as an extension does", async () => {
  const hold = { id: "a", route: AUDIO, released: undefined, because: "billing is down" };
  const holds = [{ ...hold, since: NOW - HOUR, until: JUNE }];
  const made = await report([], announcing({ acme: JUNE }), { routes: [AUDIO as string], holds });
  assertEquals(announcements(gateText(made)), [
    ["2027-06-20T00:00:00Z", "id acme", AUDIO],
    ["2027-06-20T00:00:00Z", "all", AUDIO],
  ]);
});

Deno.test("the page of any other client shows the date of all", async () => {
  for (const client of ["id beta", "app acme"]) {
    const { made, page } = await reportOn(client);
    assertStringIncludes(page, '<time datetime="2027-06-17T00:00:00Z">');
    assert(
      !/31 Dec|2027-12-31|id acme|alone/.test(page + usageText(made) + usageJson(made)),
      client,
    );
  }
});

Deno.test("a report on a client knows its extension of one route, and says it once", async () => {
  const extensions = { [AUDIO as string]: { acme: DECEMBER } };
  const sessions = [running(1000, { extensions })];
  const rows = [AUDIO, VIDEO].map((route = "") => row(30, "id acme", 4, { route }));
  const made = await report(rows, sessions, { client: "id acme" });
  assertEquals(made.verdict.state, "clear");
  assertEquals(Object.values(made.policies).map(({ sunsetAt }) => sunsetAt), [
    DECEMBER,
    POLICY.sunsetAt,
  ]);
  assertEquals(announcements(gateText(made)), [
    [LATE_DECEMBER, "id acme", AUDIO],
    ["2027-06-17T00:00:00Z", "all", VIDEO],
  ]);
  const page = ownerPage(
    await report([...rows, row(1, "id acme", 1, { route: VIDEO as string })], sessions, {
      client: "id acme",
    }),
    { sessions },
  );
  assert(!page.includes("alone"), "it has not called the route of its extension");
});

Deno.test("the page of a client whose extension has ended says that the path was removed", async () => {
  const sessions = announcing({ acme: NOW - HOUR }, { policies: { [AUDIO as string]: PAST } });
  const made = await report([row(1, "id acme", 4)], sessions, { client: "id acme" });
  const page = ownerPage(made, { sessions });
  assertStringIncludes(page, '<time datetime="2027-06-15T11:00:00Z">15 Jun 2027, 11:00 UTC</time>');
  assertStringIncludes(page, "acme still calls paths that were removed");
});
