import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { Heartbeat } from "../../lib/storage/ledger/records.ts";
import { usageJson } from "../../lib/report/json.ts";
import { gateText, usageText } from "../../lib/report/text.ts";
import { phasesText } from "../../lib/report/words.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import {
  ALWAYS,
  DAY,
  heartbeat,
  HOUR,
  NOW,
  POLICIES,
  POLICY,
  released,
  report,
  row,
  ROWS,
} from "../support/usage_report.ts";

const UNASKED = "This is on the calls that reached the servers: a cache in front may hide others." +
  " With PUBLIC_URL set, the gate asks";

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
      first: NOW - 30 * DAY, // before the period
      last: NOW - 5 * DAY + HOUR,
      routes: ["/video/:token"],
      phases: { deprecated: 60 },
      brownouts: [],
      releases: [],
    },
    {
      client: "Overcast",
      calls: 36,
      first: NOW - 8 * DAY,
      last: NOW + HOUR,
      routes: ["/audio/:token"],
      phases: { deprecated: 31, brownout: 5 },
      brownouts: [],
      releases: [],
    },
  ]);
  assertEquals(rest.recordedSince, NOW - 1000 * HOUR);
});

Deno.test("the gate leaves out ignored clients and allows some calls, but never what it cannot know", async () => {
  const rows = [row(0, "app monitor", 50), row(0, "app curl", 3), row(1, "site a.test", 2)];
  const gap = [heartbeat(1000, 30, { end: "stopped" }), heartbeat(29, 0)];
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
    assertEquals(whole.verdict.verdict, expected, what);
    const partial = await report(rows, gap, { days: 2, ...option });
    assertEquals(partial.verdict.verdict, expected === "clear" ? "unknown" : expected, what);
  }
  const text = gateText(
    await report(rows, ALWAYS, { days: 2, ignore: ["app monitor", "x"], atMost: 5 }),
  );
  assertEquals(text.split("\n"), [
    "Clear: 5 calls to /audio/:token and /video/:token, at most 5 allowed, since 2027-06-13 (2 whole" +
    " days and today, UTC), and servers were counting throughout.",
    "  app curl, 3 calls, last at 2027-06-15T13:00:00Z (deprecated)",
    "  site a.test, 2 calls, last at 2027-06-14T13:00:00Z (deprecated)",
    UNASKED,
    "Ignored: app monitor, 50 calls",
    "Ignored: x, 0 calls",
  ]);
});

Deno.test("the report says in which brownouts a client called", async () => {
  const brownout = { phase: "brownout", status: "5xx" } as const;
  const { clients } = await report([row(5, "app a", 2, brownout), row(3, "app a", 1)], ALWAYS);
  assertEquals(clients.map(({ phases, brownouts }) => ({ phases, brownouts })), [
    { phases: { brownout: 2, deprecated: 1 }, brownouts: POLICY.brownouts },
  ]);
  assertEquals(clients.map(phasesText), [
    "deprecated, 2 calls in brownouts of 2027-06-10T09:00:00Z",
  ]);
});

Deno.test("a report and its gate agree on period boundaries", async () => {
  // Two whole days and today: the period starts at midnight, 60 hours ago.
  const rows: [what: string, hoursAgo: number, verdict: string][] = [
    ["the first moment", 60, "called"],
    ["the moment before", 60 + 1 / HOUR, "clear"],
    ["exactly two days ago", 48, "called"],
    ["just now", 0, "called"],
    ["tomorrow, on a server whose clock is ahead", -13, "called"],
  ];
  for (const [what, hoursAgo, expected] of rows) {
    const at = NOW - hoursAgo * HOUR;
    const called = row(hoursAgo / 24, "curl", 1, { first: at, last: at });
    const { verdict, clients, routes } = await report([called], ALWAYS, { days: 2 });
    assertEquals(verdict.verdict, expected, what);
    const shown = expected === "called" ? 1 : 0;
    const inTable = routes.flatMap(({ days }) => days).reduce((sum, { calls }) => sum + calls, 0);
    assertEquals([clients.length, inTable], [shown, shown], what);
  }
});

Deno.test("the report takes the dates from the record, and lists others beside them", async () => {
  const other = definePolicy({ deprecatedAt: "2027-01-01" });
  const servers = [
    heartbeat(1000, 0, { server: "b", policies: { ...POLICIES, "/video/:token": other } }),
    heartbeat(900, 0),
  ];
  assertEquals(gateText(await report([], servers)).split("\n").slice(1), [
    UNASKED,
    "/video/:token announces deprecation 2027-01-01T00:00:00Z, sunset 2027-06-17T00:00:00Z, brownout " +
    "2027-06-10T09:00:00Z/2027-06-10T17:00:00Z; but server b, last heartbeat at " +
    "2027-06-15T12:00:00Z: deprecation 2027-01-01T00:00:00Z, no sunset",
  ]);
  const { policies } = await report([], servers);
  assertEquals(policies["/video/:token"]?.sunsetAt, POLICY.sunsetAt);
});

Deno.test("a verdict is on the routes that are deprecated here or on a running server, and names them", async () => {
  const [audio, video] = ["/audio/:token", "/video/:token"] as const;
  const only = (route: keyof typeof POLICIES) => ({ [route]: POLICIES[route] });
  const calls = [row(1, "curl", 3, { route: video })];
  const running = (policies: Partial<typeof POLICIES>) => [heartbeat(1000, 0, { policies })];
  const rows: [
    what: string,
    routes: string[],
    heartbeats: Heartbeat[],
    verdict: string,
    judged: string[],
  ][] = [
    ["both", [audio, video], running(POLICIES), "called", [audio, video]],
    ["one that a running server does not count", [audio, video], running(only(audio)), "called", [
      audio,
      video,
    ]],
    ["the line of one deleted", [audio], running(only(audio)), "clear", [audio]],
    ["the line of one deleted, beside old servers", [audio], running(POLICIES), "called", [
      audio,
      video,
    ]],
    ["both lines deleted, beside old servers", [], running(POLICIES), "called", [audio, video]],
    ["both lines deleted", [], running({}), "unknown", []],
    [
      "both lines deleted, and no server",
      [],
      [heartbeat(99, 9, { end: "stopped" })],
      "unknown",
      [],
    ],
  ];
  for (const [what, routes, heartbeats, expected, judged] of rows) {
    const options = { routes, days: 7, usageDays: 400 };
    const called = await report(calls, heartbeats, options);
    assertEquals([called.verdict.verdict, called.judged], [expected, judged], what);
    const text = gateText(called);
    for (const route of judged) assert(text.includes(route), text);
    if (judged.length === 0) assertMatch(text, /^Unknown: no route is deprecated, here or on a/);
  }
  const uncounted = await report([], running(only(audio)));
  assertEquals(uncounted.verdict.verdict, "unknown");
});

Deno.test("the gate ignores our own clients by default, and says so", async () => {
  const own = ["app media-head-check", "app media-head-gate-1", "app media-head-gate-2"];
  const usage = own.map((client, index) => row(1, client, index + 1));
  const quiet = await report(usage, ALWAYS);
  assertEquals(quiet.verdict.verdict, "clear");
  assertEquals(quiet.ignored.map(({ client, calls }) => `${client}: ${calls}`), [
    "app media-head-check: 1",
    "app media-head-gate-1: 2",
    "app media-head-gate-2: 3",
  ]);
  assertStringIncludes(gateText(quiet), "no other calls to");
  assertEquals((await report([], ALWAYS)).ignored, [], "nothing is said of nobody");
});

Deno.test("a clear verdict says on whose word it rests", async () => {
  const heartbeats = [
    heartbeat(1000, 50, { end: "gone", declaredAt: NOW - 49 * HOUR }),
    heartbeat(50, 0, { server: "b" }),
    heartbeat(1000, 900, { server: "c", end: "gone", declaredAt: NOW - 800 * HOUR }), // before
  ];
  const text = gateText(await report([], heartbeats));
  assertMatch(text, /^Clear, trusting that 1 server had answered its last call: no calls to /);
  assertMatch(
    text,
    /\nDeclared gone: a, last heartbeat at 2027-06-13T10:00:00Z\. Calls of some five/,
  );
  assert(!text.includes("Declared gone: c"));
  const cut = [heartbeats[0] as Heartbeat, heartbeat(49, 0, { server: "b" })];
  const both = gateText(await report([], cut, { trustStops: true }));
  assertMatch(
    both,
    /^Clear, trusting 1 stop of 1 h 0 min in all and that 1 server had answered its/,
  );
});

Deno.test("an unknown verdict says when it can be clear, if that is known", async () => {
  const gap = [heartbeat(1000, 30, { end: "stopped" }), heartbeat(29, 0)]; // ends on 14 June, 07:00
  const old = [heartbeat(1000, 150, { end: "stopped" }), heartbeat(149, 0)]; // ends on 9 June, 07:00
  const silent = heartbeat(9, 8, { server: "b" });
  const rows: [
    what: string,
    heartbeats: Heartbeat[],
    line: string | undefined,
    usageDays?: number,
  ][] = [
    ["a gap of yesterday", gap, "Can be clear from 2027-06-22."],
    [
      "an older gap",
      old,
      "Can be clear from 2027-06-17. `--gate 5` asks only about what is on record.",
    ],
    ["never counted", [], "Can be clear from 2027-06-23."],
    [
      "a server that is back",
      [heartbeat(1000, 30), heartbeat(29, 0)],
      "Can be clear from 2027-06-22.",
    ],
    ["a silent server", [...gap, silent], undefined],
    ["a server of the future", [...gap, heartbeat(9, -1, { server: "b" })], undefined],
    ["days deleted before they are asked for", gap, undefined, 6],
  ];
  for (const [what, heartbeats, expected, usageDays = 7] of rows) {
    const text = gateText(await report([], heartbeats, { days: 7, usageDays }));
    const [line] = /Can be clear.*/.exec(text) ?? [];
    assertEquals(line, expected, `${what}: ${text}`);
  }
  // It is as said.
  const { recovery } = await report([], old, { days: 7 });
  const at = (day: string) => Date.parse(day) + HOUR;
  const later = (now: number) =>
    report([], [old[0] as Heartbeat, heartbeat(149, (NOW - now) / HOUR)], { days: 7, now });
  assertEquals((await later(at("2027-06-16"))).verdict.verdict, "unknown");
  assertEquals((await later(at(recovery?.from ?? ""))).verdict.verdict, "clear");
  assertEquals((await report([], old, { days: 5 })).verdict.verdict, "clear");
  assertEquals((await report([], old, { days: 6 })).verdict.verdict, "unknown");
});

Deno.test("thirty days of ordinary operation are clear, by the words that README gives for each", async () => {
  const servers = Array.from({ length: 40 }, (_, night) => ({ night, server: `server-${night}` }));
  const hours = (night: number) => (40 - night) * 24;
  const stopped = { end: "stopped" } as const;
  const [minute, seconds] = [1 / 60, 1 / 3600];
  /** The server that runs in the 35th night is killed, declared gone, and followed after a while. */
  const killed = (hoursAfter: number, isGone: boolean) => [
    heartbeat(1000, 100, isGone ? { end: "gone", declaredAt: NOW - 99 * HOUR } : {}),
    heartbeat(100 - hoursAfter, 0, { server: "next" }),
  ];
  const rows: [
    what: string,
    heartbeats: Heartbeat[],
    plain: string,
    trusting: string,
    declared?: Heartbeat[],
  ][] = [
    [
      "nightly deploys, each server beside the next for a minute",
      servers.map(({ night, server }) =>
        heartbeat(hours(night), Math.max(hours(night) - 24 - minute, 0), { server, ...stopped })
      ),
      "clear",
      "clear",
    ],
    [
      "weekly reboots of three minutes",
      [0, 1, 2, 3, 4, 5].map((week) =>
        heartbeat((6 - week) * 168 - 3 * minute, (5 - week) * 168, {
          server: `${week}`,
          ...stopped,
        })
      ),
      "unknown",
      "clear",
    ],
    [
      "scaling to zero every night",
      servers.map(({ night, server }) =>
        heartbeat(hours(night), hours(night) - 16, { server, ...stopped })
      ),
      "unknown",
      "clear",
    ],
    [
      "a crash that is back in five seconds",
      killed(5 * seconds, false),
      "unknown",
      "unknown",
      killed(5 * seconds, true),
    ],
    [
      "a power cut of ten minutes",
      killed(10 * minute, false),
      "unknown",
      "unknown",
      killed(10 * minute, true),
    ],
  ];
  for (const [what, heartbeats, plain, trusting, declared] of rows) {
    const verdictOf = async (heartbeats: Heartbeat[], trustStops: boolean) =>
      (await report([], heartbeats, { days: 30, trustStops })).verdict.verdict;
    assertEquals(await verdictOf(heartbeats, false), plain, what);
    assertEquals(await verdictOf(heartbeats, true), trusting, what);
    if (declared === undefined) continue;
    assertEquals(
      await verdictOf(declared, false),
      what.includes("cut") ? "unknown" : "clear",
      what,
    );
    assertEquals(await verdictOf(declared, true), "clear", what);
  }
});

Deno.test("the report adds up the releases of the period, most calls first", async () => {
  const rows = [row(1, "app a", 20), row(8, "app a", 9), row(1, "app b", 2), row(1, "id c", 1)];
  const releases = [
    ...[
      released(0, "app a", "2.0", 3),
      released(5, "app a", "2.0", 2),
      released(5, "app a", "1.0", 6),
    ],
    ...[released(8, "app a", "0.9", 9), released(1, "app b", "1.0", 2)], // the first is too old
  ];
  const whole = await report(rows, ALWAYS, { releases });
  const at = (daysAgo: number) => NOW - daysAgo * DAY + HOUR;
  const expected = [
    { release: "1.0", calls: 6, last: at(5) },
    { release: "2.0", calls: 5, last: at(0) },
  ];
  const [a, b, c] = whole.clients;
  assertEquals(a?.releases, expected);
  assertEquals([b?.releases.length, c?.releases.length], [1, 0]);
  const { clients } = JSON.parse(usageJson(whole));
  assertEquals(clients[0].releases[0], {
    ...expected[0],
    last: "2027-06-10T13:00:00.000Z",
  });
  assertMatch(
    usageText(whole),
    /Phases {6}Releases\napp a .*1\.0: 6, 2\.0: 5\napp b .* deprecated\n/,
  );
  const one = await report(rows, ALWAYS, { releases, client: "app b" });
  assertEquals(one.clients.map(({ client }) => client), ["app b"]);
  assert(!usageText(one).includes("Releases"), "it has one only");
  assert(!gateText(whole).includes("2.0"));

  const many = Array.from(
    { length: 60 },
    (_, index) => released(1, "app a", `1.${index}`, 1 + index),
  );
  const text = usageText(await report(rows, ALWAYS, { releases: many }));
  assertMatch(text, / 1\.59: 60, 1\.58: 59, .*, 1\.35: 36, and 35 more\n/);
});
