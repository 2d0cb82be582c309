import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { definePolicy } from "../../lib/lifecycle/policy.ts";
import { recordUsage } from "../../lib/usage/recorder.ts";
import { type Report, reportUsage } from "../../lib/usage/report.ts";
import { gapsIn } from "../../lib/usage/verdict.ts";
import { axisTicks } from "../../lib/cli/usage_chart.ts";
import { usageCsv } from "../../lib/cli/usage_csv.ts";
import { usagePage } from "../../lib/cli/usage_page.ts";
import { gateText, usageText } from "../../lib/cli/usage_text.ts";
import { sunsetText, trendText } from "../../lib/cli/usage_words.ts";
import type { Usage, Watch } from "../../lib/storage/ledger.ts";
import { launchBrowser, readAxe, testInBrowser } from "../support/browser.ts";
import { openLocal } from "../support/local_storage.ts";
import { media } from "../support/media_cli.ts";
import { MemoryLedger } from "../../lib/storage/memory/ledger.ts";
import { fromRoot } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

const test = needing("processes");

const NOW = Date.parse("2027-06-15T12:00:00Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const POLICY = definePolicy({
  deprecatedAt: "2027-01-01",
  sunsetAt: "2027-06-17",
  brownouts: ["2027-06-10T09:00Z/PT8H"],
});

/** A row of the ledger: so many days ago, by whom, how often. */
function row(daysAgo: number, client: string, calls: number, more: Partial<Usage> = {}): Usage {
  const at = NOW - daysAgo * DAY;
  const day = new Date(at).toISOString().slice(0, 10);
  const fixed = {
    route: "/audio/:token",
    method: "HEAD",
    phase: "deprecated",
    status: "2xx",
    impact: "breaking",
  } as const;
  return { ...fixed, day, client, calls, first: at, last: at + HOUR, ...more };
}

/** A server that counted between two times, in hours before now. */
function watch(fromHoursAgo: number, untilHoursAgo: number, more: Partial<Watch> = {}): Watch {
  const [from, until] = [fromHoursAgo, untilHoursAgo].map((hours) => NOW - hours * HOUR);
  return { server: "a", from: from as number, until: until as number, ...more };
}

async function report(
  rows: readonly Usage[],
  watches: readonly Watch[],
  { days = 7, now = NOW, keptFrom }: { days?: number; now?: number; keptFrom?: string } = {},
): Promise<Report> {
  const ledger = new MemoryLedger();
  if (keptFrom !== undefined) await ledger.forget(keptFrom);
  await ledger.add(rows, () => {});
  for (const each of watches) await ledger.mark(each);
  const routes = ["/audio/:token", "/video/:token"];
  return await reportUsage(ledger, { routes, policy: POLICY, days, now });
}

const ALWAYS = [watch(1000, 0)];
const ROWS = [
  row(30, "Forgotten", 7), // before both periods
  row(30, "curl", 7),
  row(40, "curl", 1, { impact: "none" }),
  row(15, "Overcast", 999), // a day too early
  row(14, "Overcast", 40),
  row(8, "Overcast", 10),
  row(8, "Overcast", 99, { status: "4xx", impact: "none" }),
  row(7, "Overcast", 30),
  row(6, "Overcast", 5, { phase: "brownout", status: "4xx" }),
  row(5, "curl", 60, { route: "/video/:token" }),
  row(5, "scanner", 12, { status: "4xx", impact: "none" }),
  row(0, "Overcast", 1),
];

Deno.test("reportUsage() adds up one period, with its days, routes and clients", async () => {
  const { from, today, calls, otherRequests, routes, clients, ...rest } = await report(
    ROWS,
    ALWAYS,
  );
  assertEquals([from, today, calls, otherRequests], ["2027-06-08", "2027-06-15", 96, 12]);
  assertEquals(
    routes.map(({ route, calls, otherRequests, trend }) => [route, calls, otherRequests, trend]),
    [
      ["/audio/:token", 36, 12, { calls: 35, previousCalls: 50 }], // today is not compared
      ["/video/:token", 60, 0, { calls: 60, previousCalls: 0 }],
    ],
  );
  assertEquals(routes[0]?.days.map(({ calls }) => calls), [30, 5, 0, 0, 0, 0, 0, 1]);
  assertEquals(routes[0]?.days[1]?.byPhase, { brownout: 5 });
  assertEquals(clients, [
    {
      client: "curl",
      calls: 60,
      trend: { calls: 60, previousCalls: 0 },
      first: NOW - 30 * DAY, // ever
      last: NOW - 5 * DAY + HOUR,
      routes: ["/video/:token"],
    },
    {
      client: "Overcast",
      calls: 36,
      trend: { calls: 35, previousCalls: 50 },
      first: NOW - 15 * DAY,
      last: NOW + HOUR,
      routes: ["/audio/:token"],
    },
  ]);
  assertEquals(rest.recordedSince, NOW - 1000 * HOUR);
});

Deno.test("a report and its gate say the same of every moment", async () => {
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
    const { verdict, calls, clients, routes } = await report([called], ALWAYS, { days: 2 });
    assertEquals(verdict.verdict, expected, what);
    const shown = expected === "called" ? 1 : 0;
    const inTable = routes.flatMap(({ days }) => days).reduce((sum, { calls }) => sum + calls, 0);
    assertEquals([calls, clients.length, inTable], [shown, shown, shown], what);
  }
});

Deno.test("the gate is never clear over a ledger that lacks something, and says what", async () => {
  const silent = { server: "b" };
  const stopped = { ...silent, end: "stopped" } as const;
  const rows: [
    what: string,
    rows: Usage[],
    watches: Watch[],
    gaps: string[] | "clear" | "called",
    options?: { keptFrom?: string; now?: number },
  ][] = [
    ["nothing called, always counting", [], ALWAYS, "clear"],
    ["only what removal does not break", [row(1, "x", 5, { impact: "none" })], ALWAYS, "clear"],
    ["called, and never counting", [row(0, "curl", 1)], [], "called"],
    ["never counting", [], [], ["no server 60 to 0"]],
    ["counting since a while", [], [watch(47, 0)], ["no server 60 to 47"]],
    ["stopped", [], [watch(100, 1, { end: "stopped" })], ["no server 1 to 0"]],
    ["fell silent", [], [watch(100, 1)], ["silent a 1 to 0"]],
    ["told to be gone", [], [watch(100, 1, { end: "gone" })], ["no server 1 to 0"]],
    [
      "a gap",
      [],
      [watch(100, 30, stopped), watch(29, 0)],
      ["no server 30 to 29"],
    ],
    [
      "two gaps",
      [],
      [watch(47, 30, stopped), watch(29, 0)],
      ["no server 60 to 47", "no server 30 to 29"],
    ],
    ["the machine slept", [], [watch(100, 30), watch(29, 0)], ["no server 30 to 29"]],
    ["a restart", [], [watch(100, 30, stopped), watch(30 - 1 / 70, 0)], "clear"],
    ["a restart of a minute and more", [], [watch(100, 30, stopped), watch(30 - 1 / 59, 0)], [
      "no server 30 to 29.98",
    ]],
    ["one takes over", [], [watch(100, 20, stopped), watch(30, 0)], "clear"],
    ["a long watch over a short one", [], [watch(100, 0), watch(40, 39, stopped)], "clear"],
    ["the last seconds are on their way", [], [watch(100, 1 / 70)], "clear"],
    ["a server cannot write", [], [watch(100, 0), watch(100, 50, silent)], ["silent b 50 to 0"]],
    [
      "it could not, long before the period",
      [],
      [watch(100, 0), watch(100, 90, silent)],
      ["silent b 60 to 0"],
    ],
    ["it only registered", [], [watch(100, 0), watch(9, 9, silent)], ["silent b 9 to 0"]],
    [
      "it was killed, and told to be gone",
      [],
      [watch(100, 0), watch(100, 50, { ...silent, end: "gone" })],
      "clear",
    ],
    ["it slept, and came back", [], [
      watch(100, 0),
      watch(100, 50, silent),
      watch(40, 0, silent),
    ], "clear"],
    ["days were deleted", [], ALWAYS, ["deleted 60 to 36"], { keptFrom: "2027-06-14" }],
    ["days before were deleted", [], ALWAYS, "clear", { keptFrom: "2027-06-13" }],
    ["all days were deleted", [], ALWAYS, ["deleted 60 to 0"], { keptFrom: "2027-07-01" }],
    [
      "the gate's clock is ahead",
      [],
      ALWAYS,
      ["silent a 0 to -0.02"],
      { now: NOW + MINUTE + 1_000 },
    ],
    ["the gate's clock is behind", [], ALWAYS, "clear", { now: NOW - HOUR }],
  ];
  for (const [what, usage, watches, expected, options] of rows) {
    const { verdict } = await report(usage, watches, { days: 2, ...options });
    const hours = (instant: number) => Math.round((NOW - instant) / HOUR * 100) / 100;
    const seen = verdict.verdict !== "unknown" ? verdict.verdict : verdict.gaps.map((gap) => {
      const server = gap.reason === "silent" ? ` ${gap.server}` : "";
      return `${gap.reason}${server} ${hours(gap.start)} to ${hours(gap.end)}`;
    });
    assertEquals(seen, expected, what);
  }
});

Deno.test("gapsIn() gives the gaps within an interval, in the order of time", () => {
  const end = NOW - 5 * HOUR;
  const interval = { start: NOW - 10 * HOUR, end };
  const stopped = watch(20, 7, { end: "stopped" });
  const silent = watch(20, 8, { server: "b" });
  const later = watch(3, 0, { server: "c" });
  const coverage = { watches: [stopped, later], keptFrom: undefined };
  const gap = { reason: "no server", start: NOW - 7 * HOUR, end } as const;
  assertEquals(gapsIn(coverage, interval, NOW), [gap]);
  assertEquals(gapsIn({ ...coverage, watches: [stopped, silent, later] }, interval, NOW), [
    { reason: "silent", server: "b", start: NOW - 8 * HOUR, end },
  ]);
  const three = [watch(9, 8, { end: "stopped" }), watch(7, 6, { server: "b" }), later];
  assertEquals(
    gapsIn({ ...coverage, watches: three }, interval, NOW).map(({ reason, start }) => [
      reason,
      (NOW - start) / HOUR,
    ]),
    [["no server", 10], ["no server", 8], ["silent", 6]],
  );
  const two = [watch(20, 6), watch(19, 8, { server: "b" })];
  assertEquals(
    gapsIn({ ...coverage, watches: two }, interval, NOW).map(({ start }) => (NOW - start) / HOUR),
    [8, 6],
  );
  assertEquals(gapsIn({ watches: two, keptFrom: "2027-06-16" }, interval, NOW), [
    { reason: "deleted", ...interval },
  ]);
  const deleted = { watches: [watch(9, 0)], keptFrom: "2027-06-15" };
  assertEquals(gapsIn(deleted, { start: NOW - DAY, end: NOW }, NOW).map(({ end }) => end), [
    NOW - 12 * HOUR,
    NOW - 9 * HOUR,
  ]);
});

Deno.test("a trend compares only days that are all on record", async () => {
  const steady = Array.from({ length: 60 }, (_, daysAgo) => row(daysAgo, "curl", 100));
  const trendOf = async (options: { days: number; keptFrom?: string }, watches = ALWAYS) =>
    (await report(steady, watches, options)).routes[0]?.trend;
  assertEquals(await trendOf({ days: 20 }), { calls: 2000, previousCalls: 2000 });
  const since = [watch(40.5 * 24, 0)]; // the midnight before 40 days ago
  assertEquals(await trendOf({ days: 20 }, since), { calls: 2000, previousCalls: 2000 });
  assertEquals(await trendOf({ days: 20 }, [watch(40.4 * 24, 0)]), undefined);
  assertEquals(await trendOf({ days: 20, keptFrom: "2027-05-06" }), {
    calls: 2000,
    previousCalls: 2000,
  });
  assertEquals(await trendOf({ days: 20, keptFrom: "2027-05-07" }), undefined);
});

Deno.test("USAGE_DAYS makes no trend: 100 calls a day for 25 days, of which 10 are kept", async () => {
  const ledger = new MemoryLedger();
  const clock = { now: NOW - 25 * DAY };
  const options = { ledger, routes: [], now: () => clock.now, log() {} };
  const config = { usageDays: 10, isTelemetryOn: false, policy: POLICY };
  const { meter, record, stop } = await recordUsage({ ...options, config });
  const tally = meter.tally({
    ...{ route: "/audio/:token", method: "HEAD", phase: "deprecated", status: 200, hasToken: true },
  });
  for (let tick = 1; tick <= 25 * 1_600; tick++) {
    clock.now += DAY / 1_600; // 54 seconds
    if (tick % 16 === 8) meter.count(tally, "curl", clock.now);
    await record();
  }
  await stop();
  const read = (days: number) =>
    reportUsage(ledger, { routes: [], policy: POLICY, days, now: NOW });
  const whole = await read(10);
  assertEquals([whole.routes[0]?.trend, whole.clients[0]?.trend], [undefined, undefined]);
  assertEquals([whole.calls, whole.verdict.verdict], [1_050, "called"]); // and half of today
  assertEquals((await read(5)).routes[0]?.trend, { calls: 500, previousCalls: 500 });
  assertEquals(whole.recordedSince, Date.parse("2027-06-05"));
});

Deno.test("a week kept is no evidence of 19 days without a call", async () => {
  const ledger = new MemoryLedger();
  await ledger.add([row(10, "curl", 100)], () => {});
  const clock = { now: NOW - 30 * DAY };
  const config = { usageDays: 7, isTelemetryOn: false, policy: POLICY };
  const options = { ledger, routes: [], now: () => clock.now, log() {}, config };
  const { record, stop } = await recordUsage(options);
  for (; clock.now < NOW; clock.now += MINUTE) await record();
  await stop();
  const gate = async (days: number) =>
    (await reportUsage(ledger, { routes: [], policy: POLICY, days, now: NOW })).verdict;
  assertEquals((await gate(7)).verdict, "clear");
  assertEquals(await gate(19), {
    verdict: "unknown",
    gaps: [{
      reason: "deleted",
      start: Date.parse("2027-05-27"),
      end: Date.parse("2027-06-08"),
    }],
  });
});

Deno.test("trendText() is true of small numbers and small changes", () => {
  const rows: [calls: number, previousCalls: number, text: string][] = [
    [0, 0, "unchanged"],
    [5, 5, "unchanged"],
    [5, 0, "none before"],
    [0, 5, "down 100 %"],
    [36, 50, "down 28 %"],
    [1, 1_000, "down 99.9 %"],
    [1, 1_000_000, "down more than 99.9 %"],
    [4, 1_000, "down 99.6 %"],
    [1_001, 1_000, "up 0.1 %"],
    [1_000_001, 1_000_000, "up less than 0.1 %"],
    [999_999, 1_000_000, "down less than 0.1 %"],
    [199, 100, "up 99 %"],
    [200, 100, "up 100 %"],
    [3_000, 100, "up 2,900 %"],
    [104, 100, "up 4.0 %"],
  ];
  for (const [calls, previousCalls, text] of rows) {
    assertEquals(trendText({ calls, previousCalls }), text, `${calls} after ${previousCalls}`);
  }
  assertEquals(trendText(undefined), "unknown");
});

Deno.test("sunsetText() says how far away the sunset is, before and after it", () => {
  const sunset = Date.parse("2027-06-17");
  const rows: [hoursBefore: number, text: string][] = [
    [49 * 24, "in 49 days"],
    [49, "in 2 days"],
    [48, "in 2 days"],
    [47.9, "in 47 hours"],
    [1, "in 1 hour"],
    [0.5, "in 30 minutes"],
    [0.001, "in less than a minute"],
    [0, "less than a minute ago"],
    [-6, "6 hours ago"],
    [-48, "2 days ago"],
  ];
  for (const [hours, text] of rows) {
    const expected = `Sunset: 2027-06-17T00:00:00Z, ${text}.`;
    assertEquals(sunsetText(POLICY, sunset - hours * HOUR), expected);
  }
});

Deno.test("usageText() shows the calls a day, the clients, the sunset and the verdict", async () => {
  const text = usageText(await report(ROWS, ALWAYS));
  const parts = [
    "Calls of deprecated routes from 2027-06-08 to now (7 whole days and today so far, UTC)\n",
    "\n/audio/:token: 36 calls, and 12 other requests\n" +
    "  35 calls in 7 whole days, down 30 % from 50 in the 7 days before\n" +
    `  2027-06-08  30  ${"█".repeat(40)}\n` +
    `  2027-06-09   5  ${"█".repeat(7)}  brownout\n` +
    "  2027-06-10   0\n",
    "\n  2027-06-15   1  ██  so far\n",
    "\n/video/:token: 60 calls\n  60 calls in 7 whole days, 0 in the 7 days before\n",
    "\nClient    Calls  Trend        First seen ever       Last seen\n" +
    "curl         60  none before  2027-05-16T12:00:00Z  2027-06-10T13:00:00Z\n" +
    "Overcast     36  down 30 %    ",
    "\nCalls are on record since 2027-05-04T20:00:00Z; ",
    "\nSunset: 2027-06-17T00:00:00Z, in 36 hours.\n" +
    "Still called: 96 calls by 2 clients since 2027-06-08 (7 whole days and today, UTC), the last" +
    " by Overcast at 2027-06-15T13:00:00Z.",
  ];
  for (const part of parts) assertStringIncludes(text, part);
  assert(!text.includes("not all on record"));
  const restarting = usageText(await report([], [watch(1000, 1 / 120, { end: "stopped" })]));
  assert(!restarting.includes("not all on record"));
  const without = usageText(await report(ROWS, [watch(100, 0)]));
  assertStringIncludes(without, "No trend: the 14 days to compare are not all on record\n");
  assertMatch(without, /\n {2}2027-06-11 {3}0 {2}not all on record\n {2}2027-06-12 {3}0\n/);
  assertStringIncludes(without, "\ncurl         60  unknown  2027");
});

Deno.test("gateText() names who still calls, or what is not on record, up to 25 of each", async () => {
  const clients = Array.from({ length: 27 }, (_, index) => row(index / 24, `client-${index}`, 1));
  const called = gateText(await report(clients, ALWAYS)).split("\n");
  assertEquals(called.length, 1 + 25 + 1);
  assertEquals(called[1], "  client-0, 1 call, last at 2027-06-15T13:00:00Z");
  assertEquals(called.at(-1), "  and 2 more clients");
  assertEquals(gateText(await report(clients.slice(0, 25), ALWAYS)).split("\n").length, 26);

  const restarts = Array.from({ length: 28 }, (_, index) => {
    const from = 300 - index * 2; // an hour on, an hour off
    return watch(from, from - 1, { server: String(index), end: "stopped" });
  });
  const unknown = gateText(await report([], [...restarts, watch(245, 0)], { days: 14 }));
  assertEquals(unknown.split("\n").length, 1 + 25 + 1);
  assertMatch(unknown, /\n {2}and 3 more$/);

  assertEquals(
    gateText(await report([], [watch(1000, 0), watch(2, 1, { server: "b" })], { days: 2 })),
    [
      "Unknown: no call was counted since 2027-06-13 (2 whole days and today, UTC), but not all of that time is on record.",
      "  since 2027-06-15T11:00:00Z: server b has not been heard from",
      "  A silent server may be answering calls. If it runs, see its log, and compare its clock with" +
      " this machine's. If it has answered nothing since then: deno task media usage --gone b",
    ].join("\n"),
  );
});

Deno.test("usageCsv() quotes what needs it, and gives a spreadsheet no formulas", async () => {
  const ledger = new MemoryLedger();
  await ledger.add(["curl", "+1,2", 'a"b', "-x"].map((client) => row(0, client, 1)), () => {});
  const csv = await Array.fromAsync(usageCsv(ledger.usage("")));
  assertEquals(csv[0], "day,route,method,phase,status,impact,client,calls,first,last");
  assertEquals(
    csv[1],
    "2027-06-15,/audio/:token,HEAD,deprecated,2xx,breaking,curl,1,2027-06-15T12:00:00.000Z,2027-06-15T13:00:00.000Z",
  );
  assertEquals(csv.slice(2).map((row) => row.split("breaking,")[1]?.split(",1,2027")[0]), [
    `"'+1,2"`,
    '"a""b"',
    "'-x",
  ]);
});

Deno.test("axisTicks() ends at the first round number that holds the maximum", () => {
  const rows: [max: number, ticks: number[]][] = [
    [0, [0, 1]],
    [1, [0, 1]],
    [2, [0, 1, 2]],
    [7, [0, 2, 4, 6, 8]],
    [10, [0, 2, 4, 6, 8, 10]],
    [11, [0, 5, 10, 15]],
    [100, [0, 20, 40, 60, 80, 100]],
    [101, [0, 50, 100, 150]],
    [1000, [0, 200, 400, 600, 800, 1000]],
    [123_456, [0, 50_000, 100_000, 150_000]],
  ];
  for (const [max, ticks] of rows) assertEquals(axisTicks(max), ticks, String(max));
});

// Only a browser knows how a page comes out.
testInBrowser(
  "the report's page loads nothing, sorts its clients, and is accessible and legible",
  async () => {
    const hostile = `<img/src=x>&'"`;
    const long = "A-Client-With-A-Name-Of-Sixty-Four-Characters-Which-Is-The-Most-";
    const rows = [
      ...ROWS,
      row(1, hostile, 2),
      row(2, "zebra", 10_000),
      row(3, long, 3),
      row(5, "AppleCoreMedia", 3),
    ];
    const html = usagePage(await report(rows, ALWAYS, { days: 30 }));
    assert(!html.includes(hostile), "a client's name is taken for markup");
    const file = await Deno.makeTempFile({ suffix: ".html" });
    await Deno.writeTextFile(file, html);
    const axe = await readAxe();
    await using browser = await launchBrowser();
    for (const colorScheme of ["light", "dark"] as const) {
      for (const width of [1280, 360]) {
        const viewport = { width, height: 800 };
        const context = await browser.newContext({ colorScheme, viewport, bypassCSP: true });
        const page = await context.newPage();
        const requests: string[] = [];
        page.on("request", (request) => requests.push(request.url()));
        await page.goto(`file://${file}`);
        const names = () => page.locator("table.clients tbody th").allInnerTexts();
        const byCalls = ["zebra", "Overcast", "curl", "Forgotten", "AppleCoreMedia", long, hostile];
        const sorted = async (...buttons: string[]) => {
          for (const name of buttons) await page.getByRole("button", { name }).click();
          return await names();
        };
        assertEquals((await names()).toSorted(), byCalls.toSorted());
        assertEquals((await names()).slice(0, 4), byCalls.slice(0, 4));
        assertEquals(await sorted("Client"), byCalls.toSorted().reverse());
        assertEquals((await sorted("Calls", "Calls")).at(-1), "zebra");
        assertEquals(await page.locator("svg rect.shade").count(), 2); // a brownout, on two routes

        const layout = await page.evaluate(MEASURE) as Layout;
        assertEquals(layout.overflow, 0, "the page is wider than the screen");
        assert(layout.smallest >= 11, `text of ${layout.smallest} px`);
        assertEquals(layout.broken, [], "names that break inside a word");
        assertEquals(layout.left, [], "numbers that are not set right");
        assertEquals(layout.overlapping, [], "labels of the axes over each other");
        await page.evaluate(axe);
        const violations = await page.evaluate(
          "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))",
        );
        assertEquals(violations, []);
        assertEquals(requests, [`file://${file}`]);
        await context.close();
      }
    }
    await Deno.remove(file);
  },
);

interface Layout {
  readonly overflow: number;
  readonly smallest: number;
  readonly broken: readonly string[];
  readonly left: readonly string[];
  readonly overlapping: readonly string[];
}

/** Runs in the page: how it comes out, text as it is seen, whatever scaled it. */
const MEASURE = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const sizes = all("main *").filter((element) => element.innerText || element.tagName === "text")
    .map((element) => {
      const scale = element.getScreenCTM ? element.getScreenCTM().a : 1;
      return parseFloat(getComputedStyle(element).fontSize) * scale;
    });
  const lines = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
  };
  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const labels = all(".chart").map((chart) => [...chart.querySelectorAll("span")]);
  return {
    overflow: document.documentElement.scrollWidth - innerWidth,
    smallest: Math.min(...sizes),
    broken: all("table.clients tbody th").filter((name) => lines(name) > name.innerText.split("-").length).map((name) => name.innerText),
    left: all("td").filter((cell) => /^[\\d,]+$/.test(cell.innerText) && getComputedStyle(cell).textAlign !== "right")
      .map((cell) => cell.innerText),
    overlapping: labels.flatMap((spans) => spans.flatMap((one, index) =>
      spans.slice(index + 1).filter((other) => overlap(one.getBoundingClientRect(), other.getBoundingClientRect()))
        .map((other) => one.innerText + " " + other.innerText))),
  };
})()`;

test("media usage answers each verdict of its gate, from a real ledger", async () => {
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const usage = (...args: string[]) => media(subject.folder, ["usage", ...args]);
  const gate = async (...more: string[]) => {
    const { code, stdout, stderr } = await usage("--gate", "2", ...more);
    return [code, stdout || stderr] as const;
  };
  const [unknown, reason] = await gate();
  assertEquals(unknown, 3);
  assertMatch(
    reason,
    /^Unknown: no call was counted since .* on record\.\n {2}.*Z: no server was registered\n$/,
  );

  const now = Date.now();
  const from = now - 5 * DAY;
  await ledger.mark({ server: "first", from, until: now + HOUR });
  const [clear, text] = await gate();
  assertEquals(clear, 0);
  assertMatch(text, /^Clear: no call since .*, and servers were counting all the time\.\n$/);

  await ledger.mark({ server: "killed", from, until: now - HOUR });
  const [silent, advice] = await gate();
  assertEquals(silent, 3);
  assertMatch(
    advice,
    /server killed has not been heard from\n.* deno task media usage --gone killed\n$/,
  );
  const judged = JSON.parse((await gate("--json"))[1]);
  assertEquals([judged.verdict, judged.days, judged.clients], ["unknown", 2, []]);
  assertEquals(judged.gaps.length, 1);
  assertEquals(judged.gaps[0].start, new Date(now - HOUR).toISOString());
  for (const [server, refusal] of [["first", "was heard from at"], ["nobody", "is not in the"]]) {
    const { code, stderr } = await usage("--gone", "killed", server as string);
    assertEquals(code, 1);
    assertStringIncludes(stderr, `media: server "${server}" ${refusal}`);
  }
  assertEquals((await gate())[0], 3, "all or none");
  const gone = await usage("--gone", "killed");
  assertEquals([gone.code, gone.stderr], [0, ""]);
  assertMatch(gone.stdout, /^Server killed is gone; it was last heard from at 20.*Z\n$/);
  assertEquals((await gate())[0], 0);
  await ledger.mark({ server: "killed", from, until: now - HOUR / 2 }); // it was not
  assertEquals((await gate())[0], 3);
  await usage("--gone", "killed", "--json");

  const day = new Date(now).toISOString().slice(0, 10);
  await ledger.add([{ ...row(0, "Overcast", 12), day, first: now - 5000, last: now }], () => {});
  const [called, clients] = await gate();
  assertEquals(called, 1);
  assertMatch(
    clients,
    /^Still called: 12 calls by 1 client .*\n {2}Overcast, 12 calls, last at 20/,
  );
  const { clients: named, ...rest } = JSON.parse((await gate("--json"))[1]);
  assertEquals(rest.verdict, "called");
  assertEquals(named, [{
    client: "Overcast",
    calls: 12,
    routes: ["/audio/:token"],
    trend: { calls: 0, previousCalls: 0 },
    first: new Date(now - 5000).toISOString(),
    last: new Date(now).toISOString(),
  }]);
  const unsure = JSON.parse((await usage("--gate", "4", "--json")).stdout);
  assertEquals(unsure.clients[0].trend, null, "what was called before is not known");

  for (const days of ["0", "x", "1.5", "-1", "3651"]) {
    const { code, stderr } = await usage("--gate", days);
    assertEquals(code, 2, days);
    assertMatch(stderr, /Expected a number of days from 1 to 3650|unknown option/);
  }
  assertEquals((await usage("--gate", "3650")).code, 1);
  for (
    const together of [["--csv", "--json"], ["--csv", "--html", "x"], ["--gate", "1", "--csv"]]
  ) {
    const { code, stderr } = await usage(...together);
    assertEquals(code, 2, together.join(" "));
    assertStringIncludes(stderr, "cannot be used with option");
  }
});

test("media usage prints one period as text, JSON, CSV and a page", async () => {
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const usage = (...args: string[]) => media(subject.folder, ["usage", ...args]);
  const now = Date.now();
  await ledger.mark({ server: "first", from: now - 9 * DAY, until: now + HOUR });
  const rows = [0, 3, 4].map((daysAgo): Usage => {
    const at = now - daysAgo * DAY;
    const day = new Date(at).toISOString().slice(0, 10);
    return { ...row(0, "Overcast", 12), day, first: at, last: at };
  });
  await ledger.add(rows, () => {});

  const { code, stdout, stderr } = await usage("--days", "3");
  assertEquals([code, stderr], [0, ""]);
  assertMatch(stdout, /\/audio\/:token: 24 calls\n {2}12 calls in 3 whole days, 12 in the 3 days/);
  const csv = (await usage("--days", "3", "--csv")).stdout.trimEnd().split("\n").slice(1);
  assertEquals(csv.map((line) => line.slice(0, 10)), [rows[1]?.day, rows[0]?.day]);
  const json = JSON.parse((await usage("--days", "3", "--json")).stdout);
  assertEquals([json.calls, json.from], [24, rows[1]?.day]);
  assertEquals(json.recordedSince, new Date(now - 9 * DAY).toISOString());
  assert(!/\b1[6-9]\d{11}\b/.test(JSON.stringify(json)), "an instant that is not ISO 8601");
  assertEquals(JSON.parse((await usage("--json")).stdout).routes[0].trend, null);

  const page = `${subject.folder}/report.html`;
  assertEquals((await usage("--html", page)).stdout, `Wrote ${page}\n`);
  assertMatch(await Deno.readTextFile(page), /^<!DOCTYPE html>[^]*Overcast[^]*<\/html>\n$/);
  const nowhere = await usage("--html", `${subject.folder}/no/where.html`);
  assertEquals(nowhere.code, 1);
  assertStringIncludes(nowhere.stderr, 'no/where.html" cannot be written');
  const here = { INIT_CWD: subject.folder };
  await media(subject.folder, ["usage", "--html", "here.html"], here);
  assert((await Deno.stat(`${subject.folder}/here.html`)).isFile);
});

test("a server process registers before it answers, and one that was killed is missed", async () => {
  const { markGone } = await import("../../lib/cli/usage_gone.ts");
  await using subject = await openLocal();
  const { ledger } = subject.storage;
  const judge = async (now: number) =>
    (await reportUsage(ledger, { routes: [], policy: POLICY, days: 1, now })).verdict;
  await ledger.mark({ server: "covers", from: 0, until: Date.now() + DAY });
  const known = async () => (await ledger.watches()).map(({ server }) => server);
  {
    await using killed = await ServerProcess.start({}, subject.folder);
    await requestRaw(killed.port, "HEAD", "/audio/x");
    const [, server] = await known();
    await killed.stop("SIGKILL");
    const later = Date.now() + 2 * MINUTE;
    const verdict = await judge(later);
    assert(verdict.verdict === "unknown");
    assertEquals(verdict.gaps.map((gap) => ({ ...gap, start: 0 })), [
      { reason: "silent", server: server as string, start: 0, end: later },
    ]);
    await markGone(ledger, [server as string], later);
  }
  await using stopped = await ServerProcess.start({}, subject.folder);
  await stopped.stop();
  assertEquals((await judge(Date.now() + 2 * MINUTE)).verdict, "clear");
  assertEquals((await ledger.watches()).map(({ end }) => end), [undefined, "gone", "stopped"]);
});

test("three processes keep one ledger: exact to the call, and a kill costs one flush", async () => {
  await using subject = await openLocal();
  const days = 31;
  const firstDay = new Date(Date.now() - (days - 1) * DAY).toISOString().slice(0, 10);
  const sent: Record<string, number> = {};
  const unsure: Record<string, number> = {};
  const serve = async (name: string, killAfter = Infinity) => {
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--no-prompt", "--allow-all", fromRoot("tests/support/traffic.ts")],
        ...[subject.folder, name, firstDay, String(days)],
      ],
      stdout: "piped",
    }).spawn();
    let text = "";
    let killed = false;
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (killed || text.split("recorded\n").length <= killAfter) continue;
      child.kill("SIGKILL");
      killed = true;
    }
    await child.status;
    const blocks = text.split("recorded\n");
    const last = blocks.pop() ?? "";
    const add = (to: Record<string, number>, block: string) => {
      for (const [client, count] of Object.entries(JSON.parse(block) as Record<string, number>)) {
        to[client] = (to[client] ?? 0) + count;
      }
    };
    for (const block of blocks) add(sent, block);
    if (last.endsWith("\n")) add(unsure, last);
  };
  await Promise.all([serve("one"), serve("two"), serve("three", 12)]);

  const { stdout } = await media(subject.folder, ["usage", "--days", "32", "--json"]);
  const { clients } = JSON.parse(stdout) as { clients: { client: string; calls: number }[] };
  let lost = 0;
  for (const { client, calls } of clients) {
    const [least, most] = [sent[client] ?? 0, (sent[client] ?? 0) + (unsure[client] ?? 0)];
    if (!client.startsWith("three")) assertEquals(calls, least, client);
    assert(
      calls >= least && calls <= most,
      `${client}: ${calls} calls, of ${least} to ${most} sent`,
    );
    lost += most - calls;
  }
  const counted = clients.reduce((sum, { calls }) => sum + calls, 0);
  const certain = Object.values(sent).reduce((sum, count) => sum + count, 0);
  assert(counted >= certain, `${counted} counted, ${certain} flushed`);
  assert(lost <= 40, `${lost} lost, of 40 in a flush`);
  assertEquals(clients.filter(({ client }) => !client.startsWith("three")).length, 340);
});
