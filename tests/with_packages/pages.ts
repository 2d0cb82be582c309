/** Our pages, in a browser: the notice, the report and the page for a client's owner. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { unescape } from "@std/html/entities";
import { PHASES, type Policy } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { PROBLEM_TYPES } from "../../lib/server/problems.ts";
import { ownerPage } from "../../lib/usage/output/owner_page.ts";
import type { Session } from "../../lib/usage/record/records.ts";
import {
  BROWSER,
  type BrowserContextOptions,
  checkAccessibility,
  launchBrowser,
  type Page,
  testInBrowser,
} from "../support/browser.ts";
import {
  INSTANTS,
  lastPage,
  OPEN,
  pageAt,
  POLICY,
  REDIRECTING,
  SETTINGS,
} from "../support/notice_pages.ts";
import { shared } from "../support/permissions.ts";
import { usagePage } from "../support/usage_outputs.ts";
import { ALWAYS, read, report, row, ROWS, running, session } from "../support/usage_report.ts";

const ORIGIN = "https://media.example";

const browser = shared(BROWSER, launchBrowser);

const UNDEPRECATED = definePolicy({ ...SETTINGS, deprecatedAt: "2027-06-01", brownouts: [] });

/** The pages to test: every phase, and policies without optional settings. */
const STATES: [name: string, page: ReturnType<typeof pageAt>][] = [
  ...PHASES.map((phase): [string, ReturnType<typeof pageAt>] => [phase, pageAt(INSTANTS[phase])]),
  ["deprecated, the brownouts over", pageAt("2027-06-20T00:00Z")],
  ["deprecated without a sunset", pageAt(INSTANTS.deprecated, OPEN)],
  ["removed, redirecting", pageAt(INSTANTS.removed, REDIRECTING)],
  ["two paths in different phases", pageAt(INSTANTS.brownout, POLICY, UNDEPRECATED)],
];
/** The states that axe looks at: every colour, and every arrangement. */
const COLOURED = new Set<string>([...PHASES, "two paths in different phases"]);

/** A page as rendered under its own Content-Security-Policy. */
interface Visit {
  readonly page: Page;
  /** Every URL that the browser requested. */
  readonly requests: readonly string[];
  /** The browser's console messages and page errors. */
  readonly complaints: readonly string[];
}

/** Opens a notice in a new context, where every other request is aborted. */
async function visit(
  notice: Awaited<ReturnType<typeof pageAt>>,
  options: BrowserContextOptions,
): Promise<Visit> {
  const context = await browser().newContext({
    timezoneId: "America/New_York",
    locale: "en-US",
    ...options,
  });
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.message));
  await context.route("**/*", async (route) => {
    requests.push(route.request().url());
    if (requests.length > 1) return await route.abort();
    await route.fulfill({
      contentType: "text/html; charset=utf-8",
      headers: { "Content-Security-Policy": notice.contentSecurityPolicy },
      body: notice.html,
    });
  });
  await page.goto(`${ORIGIN}/deprecation`, { waitUntil: "load" });
  return { page, requests, complaints };
}

/** The elements that overflow, except those that scroll on their own. */
const STICKING_OUT = `[...document.querySelectorAll("main *")]
  .filter((element) => element.closest("pre, .scroll") === null &&
    element.scrollWidth > element.clientWidth && element.clientWidth > 0)
  .map(({ outerHTML }) => outerHTML.slice(0, 100))`;

/** Decodes the icon, and returns its width. */
const ICON_WIDTH = `new Promise((resolve, reject) => {
  const icon = new Image();
  icon.onload = () => resolve(icon.naturalWidth);
  icon.onerror = () => reject(new Error("no icon"));
  icon.src = document.querySelector('link[rel="icon"]').href;
})`;

// Only a browser knows what is loaded, and colours and sizes.
testInBrowser(
  "the page loads nothing, fits any screen, obeys its own policy, and is accessible",
  async (t) => {
    for (const [name, notice] of STATES) {
      await t.step(name, async () => {
        const { page, requests, complaints } = await visit(await notice, {
          colorScheme: "dark",
          viewport: { width: 320, height: 640 },
        });
        const sizes = "[document.documentElement.scrollWidth, document.body.scrollWidth]";
        assertEquals(await page.evaluate(sizes), [320, 320]);
        assertEquals(await page.evaluate(STICKING_OUT), []);
        const display = "getComputedStyle(document.querySelector('.facts')).display";
        assertEquals(await page.evaluate(display), "grid"); // the style is applied
        assert(await page.locator("time .local").count() > 0); // and so is the script
        assert(await page.evaluate(ICON_WIDTH) as number > 0);
        const shown = await page.locator("main").innerText();
        assertMatch(shown, /^\/video\/\{token\} becomes \/media\/\{token\}$/m);
        assertEquals(requests, [`${ORIGIN}/deprecation`]);
        assertEquals(complaints, []);
        if (COLOURED.has(name)) {
          assertEquals(await checkAccessibility(page), { violations: [], undecided: [] });
          await page.emulateMedia({ colorScheme: "light" });
          await page.setViewportSize({ width: 1200, height: 900 });
          assertEquals(await checkAccessibility(page), { violations: [], undecided: [] });
        }
        await page.context().close();
      });
    }
  },
);

// Only a browser can disable scripts.
testInBrowser("the page is complete without JavaScript", async () => {
  const notice = await pageAt(INSTANTS.deprecated);
  const { page, requests, complaints } = await visit(notice, { javaScriptEnabled: false });
  const shown = await page.locator("main").innerText();
  assertStringIncludes(shown, "1 Jan 2027, 00:00 UTC");
  assert(!shown.includes("your time"));
  assertEquals([requests.length, complaints], [1, []]);
  await page.context().close();
});

// Only a browser runs the script.
testInBrowser(
  "the page adds the reader's local time by the offset on each date, not today's",
  async () => {
    const rows: [timezoneId: string, locals: string[]][] = [
      // London is on UTC in winter, but not in summer.
      ["Europe/London", ["(Jun 30, 2027, 1:00 PM your time)"]],
      ["Asia/Tokyo", ["(Jan 1, 2027, 9:00 AM your time)", "(Jun 30, 2027, 9:00 PM your time)"]],
      ["UTC", []],
    ];
    for (const [timezoneId, locals] of rows) {
      const { page } = await visit(await pageAt(INSTANTS.deprecated), { timezoneId });
      const shown = await page.locator(".facts .local").allInnerTexts();
      // Some versions of the locale data put a narrow space before AM and PM.
      assertEquals(shown.map((text) => text.replaceAll(/\s/g, " ").trim()), locals, timezoneId);
      await page.context().close();
    }
  },
);

testInBrowser(
  "the page without deprecated routes fits any screen, is accessible, and leads old errors to the removal",
  async () => {
    const { page, requests, complaints } = await visit(await lastPage(), {
      viewport: { width: 320, height: 640 },
    });
    assertEquals(await page.evaluate(STICKING_OUT), []);
    assertMatch(
      await page.locator("main").innerText(),
      /^\/media\/\{token\}: published audio or video$/m,
    );
    assertEquals((await checkAccessibility(page)).violations, []);
    await page.goto(`${ORIGIN}/deprecation#removed`);
    assertStringIncludes(await page.locator(":target").innerText(), "The path was removed");
    assertEquals([requests, complaints], [[`${ORIGIN}/deprecation`], []]);
    await page.context().close();
  },
);

const OUTLINE = `getComputedStyle(document.querySelector(":target")).outlineStyle`;

// Only a browser follows a fragment.
testInBrowser("a problem's type links to its explanation, which is highlighted", async () => {
  const { page } = await visit(await pageAt(INSTANTS.deprecated), {});
  for (const [name, { title }] of Object.entries(PROBLEM_TYPES)) {
    await page.goto(`${ORIGIN}/deprecation#${name}`);
    const target = page.locator(":target");
    assertStringIncludes(await target.innerText(), title);
    assertEquals(await target.evaluate(OUTLINE), "solid");
  }
  await page.context().close();
});

const NAMES = [
  `<img/src=x>&'"`,
  "A-Client-With-A-Name-Of-Sixty-Four-Characters-Which-Is-The-Most-",
  ...Array.from({ length: 30 }, (_, index) => `app C${10 + index}`),
  "site player.example-broadcasting.co.uk",
];
const CALLED = [...ROWS, row(2, "zebra", 10_000), ...NAMES.map((name) => row(3, name, 2))];

const APP = "app Overcast";
const RELEASED = [
  row(7, APP, 30, { release: "3.0.1" }),
  row(6, APP, 5),
  row(0, APP, 1, { release: "2.9.4" }),
  row(5, "id 7", 60, { release: "okhttp", route: "/video/:token" }),
];
const PUBLIC_URL = "https://media.example.com";
const CONTACT = "mailto:ops@example.com";
const DATES = { deprecatedAt: "2027-01-01", sunsetAt: "2027-06-30", brownouts: [] };

const successorOf = () => "/media/:token";

/** The page for the owner of "Overcast", who called both paths, with what is announced for each. */
async function ownerPageOf(
  audio: Policy,
  video = audio,
  { publicUrl = PUBLIC_URL, days = 7 }: { publicUrl?: string | undefined; days?: number } = {},
): Promise<string> {
  const servers = [running(1000, { policies: { "/audio/:token": audio, "/video/:token": video } })];
  const rows = [...RELEASED, row(1, APP, 8_148, { route: "/video/:token" })];
  const options = { client: APP, days };
  const more = { sessions: servers.map(read), successorOf, publicUrl, contact: CONTACT };
  return ownerPage(await report(rows, servers, options), more);
}

const LATER = definePolicy({
  ...DATES,
  documentation: "/deprecation",
  ...{ sunsetAt: "2027-12-31", afterSunset: "redirect" },
  brownouts: ["2027-06-08/P1D", "2027-06-15T11:00Z/PT2H", "2027-09-06T09:00Z/PT1H"],
});
const OVER = definePolicy({ ...DATES, documentation: "/deprecation", sunsetAt: "2027-06-14" });
const SOON = definePolicy({ ...DATES, deprecatedAt: "2027-06-20" });

const FORTY = Array.from({ length: 40 }, (_, index) => `/v1/things-${index}/:id`);

/** Pages, and what they show: client names that are not folded away, and bars of calls. */
const PAGES: [what: string, page: () => Promise<string>, names: string[], bars: number][] = [
  [
    "many and hostile names",
    async () => usagePage(await report(CALLED, ALWAYS, { days: 30 })),
    ["zebra", "Overcast", "curl", "Forgotten", ...NAMES].slice(0, 25),
    8,
  ],
  [
    "releases",
    async () => usagePage(await report(RELEASED, ALWAYS, { days: 30 })),
    ["id 7", APP],
    4,
  ],
  [
    "forty routes, of which eight are called",
    async () => {
      const policies = Object.fromEntries(FORTY.map((route) => [route, definePolicy(DATES)]));
      const rows = FORTY.slice(0, 8).flatMap((route, index) => [
        row(3, "id key-1", 20 - index, { route }),
        row(0, "app curl", 1, { route }),
      ]);
      const servers = [running(1000, { policies }), session(9, 8, { id: "s", policies })];
      return usagePage(await report(rows, servers));
    },
    ["id key-1", "app curl"],
    16,
  ],
  ["no calls", async () => usagePage(await report([], [session(300, 1)], { days: 30 })), [], 0],
  ["an owner: in a brownout", () => ownerPageOf(LATER), [], 4],
  ["an owner: two phases", () => ownerPageOf(OVER, LATER), [], 4],
  ["an owner: one day", () => ownerPageOf(LATER, OVER, { days: 1 }), [], 2],
];

// Only a browser renders a page.
testInBrowser(
  "the pages are whole, accessible and legible on any screen, and load nothing",
  async () => {
    const file = await Deno.makeTempFile({ suffix: ".html" });
    for (const [what, makePage, names, bars] of PAGES) {
      await Deno.writeTextFile(file, await makePage());
      const context = await browser().newContext({ bypassCSP: true });
      const page = await context.newPage();
      const requests: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(`file://${file}`);
      await page.evaluate(
        "document.querySelectorAll('details').forEach((each) => each.open = true)",
      );
      for (
        const [colorScheme, width] of [["light", 1280], ["dark", 360], ["dark", 1000]] as const
      ) {
        const seen = `${what}, ${colorScheme}, ${width} px`;
        await page.emulateMedia({ media: "screen", colorScheme });
        await page.setViewportSize({ width, height: 800 });
        const layout = await page.evaluate(MEASURE) as Layout;
        assertEquals(layout.bars, bars, seen);
        assertEquals(layout.afloat, [], `${seen}: bars that do not stand on the axis`);
        assert(layout.widest <= 40, `${seen}: a bar of ${layout.widest} px`);
        assertEquals(layout.broken, [], `${seen}: dates on two lines`);
        assertEquals(layout.overflowing, [], `${seen}: wider than the screen, or scrolling inside`);
        assertEquals(layout.misaligned, [], `${seen}: numbers that are not under their heads`);
        if (width === 1280) assertEquals(layout.split, [], `${seen}: words on two lines`);
        if (width === 1280) assertEquals(layout.torn, [], `${seen}: names on two lines`);
        assert(layout.smallest >= 12, `${seen}: text of ${layout.smallest} px`);
        if (width !== 1000) assertEquals((await checkAccessibility(page)).violations, [], seen);
      }
      await page.emulateMedia({ media: "print" });
      await page.setViewportSize({ width: 717, height: 1000 }); // A4 with Chromium's margins
      const printed = await page.evaluate(MEASURE) as Layout;
      assertEquals([printed.split, printed.overflowing], [[], []], `${what}, printed`);
      if (names.length > 0) assert(printed.hasColumns, `${what}: printed as on a phone`);
      await page.evaluate(
        "document.querySelectorAll('details').forEach((each) => each.open = false)",
      );
      const shown =
        "[...document.querySelectorAll('tbody th')].filter((name) => name.checkVisibility())";
      assertEquals(await page.evaluate(`${shown}.map((name) => name.innerText)`), names, what);
      assertEquals(requests, [`file://${file}`]);
      await context.close();
    }
    await Deno.remove(file);
  },
);

/** The text of the page for a client's owner. */
async function ownerText(
  rows: Parameters<typeof report>[0],
  sessions: Parameters<typeof report>[1],
  options: Parameters<typeof report>[2],
  more: object = {},
): Promise<string> {
  const made = await report(rows, sessions, options);
  return textOf(ownerPage(made, { sessions: sessions.map(read), ...more }));
}

/** The text of a page. */
function textOf(html: string): string {
  const text = html.replaceAll(/<(style|title)>[^]*?<\/\1>/g, "").replaceAll(/<[^>]*>/g, " ");
  return unescape(text).replaceAll(/\s+/g, " ").replaceAll(/ (?=[.,;:)])/g, "");
}

Deno.test("the owner's page says what to change, by when, and which releases still call", async () => {
  const text = textOf(await ownerPageOf(LATER, OVER));
  const parts = [
    "Overcast still calls paths of media.example.com that were or will be removed",
    "Overcast calls /audio/{token} and /video/{token}.",
    "By when Deprecated from 1 Jan 2027, 00:00 UTC",
    "/audio/{token}: Removal 31 Dec 2027, 00:00 UTC",
    "/video/{token}: Removal 14 Jun 2027, 00:00 UTC",
    "/audio/{token}: Brownout from 15 Jun 2027, 11:00 UTC to 15 Jun 2027, 13:00 UTC",
    "/audio/{token}: Brownout from 6 Sep 2027, 09:00 UTC to 6 Sep 2027, 10:00 UTC",
    "/audio/{token}: A brownout is",
    "the path answers 503",
    "Once removed, the path answers 308, which redirects",
    "What to change Change only the path. Change it in stored URLs, too: in feeds, download queues and databases.",
    "/audio/{token} becomes /media/{token} /video/{token} becomes /media/{token}",
    "Read the notice at https://media.example.com/deprecation.",
    "Contact the operator: ops@example.com",
    "Calls by Overcast 8,184 calls since 8 Jun 2027, the last recorded at 15 Jun 2027, 12:00 UTC.",
    "On record since 4 May 2027, 20:00 UTC.",
    "By the record, every call to /audio/{token} has been answered with Deprecation, Sunset, and Link since 4 May " +
    "2027, 20:00 UTC.",
    "3.0.1: 30 calls, the last recorded at 8 Jun 2027, 12:00 UTC 2.9.4: 1 call, the last rec",
    "No other release is on record since 8 Jun 2027; 8,153 calls have no release on record.",
  ];
  const found = parts.map((part) => {
    assertStringIncludes(text, part);
    return text.indexOf(part);
  });
  assertEquals(found, found.toSorted((a, b) => a - b));
  assert(!/phase|trusted|verdict|still called|curl|8\.5\.0|\d{4}-\d\d-\d\d/i.test(text), text);
  assertStringIncludes(
    textOf(await ownerPageOf(OVER)),
    "paths of media.example.com that were removed",
  );
  assertStringIncludes(
    textOf(await ownerPageOf(SOON)),
    "paths of media.example.com that will be removed",
  );
});

Deno.test("the owner's page says which paths are gone, and what replaces them", async () => {
  const [audio, video] = ["/audio/:token", "/video/:token"];
  const rows = [...RELEASED, row(1, APP, 2, { route: video })];
  const before = session(1000, 10, {
    id: "before",
    policies: { [audio]: LATER, [video]: LATER },
    ended: "stopped",
  });
  const left: [policies: Record<string, Policy>, gone: string, still: RegExp | undefined][] = [
    [{ [video]: LATER }, "/audio/{token}: The path is gone", /\/video\/\{token\}: A brownout/],
    [{}, "The path is gone: it answers 404, like any unknown path.", undefined],
  ];
  for (const [policies, gone, still] of left) {
    const sessions = [before, running(5, { policies })];
    const options = { client: APP, days: 7, routes: [audio, video] };
    const text = await ownerText(rows, sessions, options, { successorOf });
    assertStringIncludes(text, "/audio/{token} becomes /media/{token}");
    assertStringIncludes(text, gone);
    if (still === undefined) assert(!/Eventually|brownout that/.test(text), text);
    else assertMatch(text, still);
  }
});

Deno.test("the owner's page says since when responses announced, and what failed in brownouts", async () => {
  const undated = { deprecatedAt: DATES.deprecatedAt };
  const began = (hoursAgo: number, policy: Policy, reportedHoursAgo = 0) =>
    session(hoursAgo, reportedHoursAgo, {
      id: `began ${hoursAgo}`,
      policies: { "/audio/:token": policy },
    });
  const first = definePolicy(undated);
  const second = definePolicy(DATES);
  const failed = { phase: "brownout", brownout: "2027-06-09T09:00:00Z", status: "5xx" } as const;
  const rows = [row(7, APP, 1), row(6, APP, 2, failed)];
  const textFrom = (sessions: Session[]) => ownerText(rows, sessions, { client: APP });
  const dated = await textFrom([began(300, first, 200), began(199, second)]);
  const answered =
    "By the record, every call to /audio/{token} has been answered with Deprecation since";
  assertStringIncludes(
    dated,
    `${answered} 3 Jun 2027, 00:00 UTC, and with Sunset since 7 Jun 2027, 04:00 UTC.`,
  );
  assertStringIncludes(dated, "2 calls in the brownout of 9 Jun 2027, 09:00 UTC");
  const open = await textFrom([began(300, first)]);
  assertStringIncludes(open, `${answered} 3 Jun 2027, 00:00 UTC. `);
});

Deno.test("the owner's page leaves out what he never called, and addresses that are unknown", async () => {
  const text = await ownerText(RELEASED, ALWAYS, { client: "id 7" }, { successorOf });
  assertStringIncludes(text, "7 still calls paths that will be removed");
  assertStringIncludes(
    text,
    "By app okhttp: 60 calls, the last recorded at 10 Jun 2027, 12:00 UTC",
  );
  assertStringIncludes(text, "No other app is on record since 8 Jun 2027. Name and release");
  assert(!/audio|https?:\/|notice|Contact|Overcast|zebra/.test(text), text);
  const idle = await ownerText([row(20, "app A", 3)], ALWAYS, { client: "app A" });
  assertEquals(
    idle.trim(),
    "A called no deprecated paths Made at 15 Jun 2027, 12:00 UTC by the operator. " +
      "No call was recorded since 8 Jun 2027.",
  );
  const hostile = `id <img/src=x>&'"`;
  const made = await report([row(1, hostile, 3)], ALWAYS, { client: hostile });
  assert(!ownerPage(made, { sessions: ALWAYS.map(read) }).includes("<img"));
});

Deno.test("the legend of a chart has only what the chart has", async () => {
  const legends = async (from: number, rows: Parameters<typeof report>[0]) => {
    const page = usagePage(await report(rows, [running(from)]));
    return [...page.matchAll(/<figcaption>([^]*?)<\/figcaption>/g)].map(([, text = ""]) =>
      textOf(text).trim()
    );
  };
  const plain = definePolicy(DATES);
  const quiet = { policies: { "/audio/:token": plain } };
  const page = usagePage(await report([row(1, "x", 1200)], [running(1000, quiet)]));
  assertStringIncludes(
    page,
    "<figcaption><span><i>■</i> calls; busiest day: 1,200 calls</span></figcaption>",
  );
  assertEquals(await legends(1000, [row(1, "x", 1)]), ["■ calls; busiest day: 1 call ■ brownout"]);
  assertEquals(await legends(100, [row(1, "x", 1)]), [
    "■ calls; busiest day: 1 call ■ brownout ■ not fully on record",
  ]);
});

Deno.test("the report page says the verdict, then who calls, then each route's days, then the rules", async () => {
  const page = usagePage(await report(CALLED, [running(160)], { ignore: ["zebra"] }));
  const parts = [
    "8 Jun 2027 to 15 Jun 2027, 12:00 UTC (7 whole days and part of 15 Jun 2027, UTC).",
    "Still called. 162 calls to /audio/{token} and /video/{token} by 35 clients, the last by ",
    "The verdict on each route",
    "/audio/{token}: called, 102 calls, the last recorded at ",
    "What the verdicts leave out",
    "Ignored: zebra (10,000 calls)",
    "15 Jun 2027, 12:00 UTC",
    "/audio/{token}",
    "calls; busiest day: 10,000 calls",
    "9 Jun 2027: 5 calls (brownout) 10 Jun 2027: 0 calls (brownout of 10 Jun 2027, 09:00 UTC)",
    "/video/{token}",
    "60 calls. Sunset: 17 Jun 2027, 00:00 UTC.",
    "8 Jun 2027: 0 calls (not fully on record)",
    "A call is a request that the removal",
    "A brownout is",
  ];
  assertStringIncludes(page, "<title>9 Jun 2027: 5 calls (brownout)</title>");
  const text = textOf(page);
  let from = 0;
  for (const part of parts) {
    const at = text.indexOf(part, from);
    assert(at >= from, `${part} after ${text.slice(from, from + 200)}`);
    from = at;
  }
  assert(!/\d{4}-\d\d-\d\d/.test(text), "a date for programs");
  const dated = usagePage(await report([row(1, "site 2027-01-01.example", 1)], ALWAYS));
  assertStringIncludes(textOf(dated), "the last by site 2027-01-01.example recorded at 14 Jun");
});

interface Layout {
  readonly bars: number;
  readonly widest: number;
  readonly afloat: readonly string[];
  readonly broken: readonly string[];
  readonly split: readonly string[];
  readonly hasColumns: boolean;
  readonly torn: readonly string[];
  readonly misaligned: readonly string[];
  readonly overflowing: readonly string[];
  readonly smallest: number;
}

/** Measures the layout in the page. */
const MEASURE = `(() => {
  const shown = [...document.querySelectorAll("main *")].filter((each) => each.checkVisibility());
  const bars = shown.filter((each) => each.matches("rect.calls, rect.brownout"));
  const axis = (bar) => bar.closest("svg").querySelector("rect.axis").getBoundingClientRect().top;
  const isSplit = (text, word) => {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return new Set([...range.getClientRects()].map(({ top }) => top)).size > 1;
  };
  const endOf = (cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getBoundingClientRect().right;
  };
  return {
    split: shown.filter((each) => each.matches("th, th span, td"))
      .flatMap((each) => [...each.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE))
      .flatMap((text) => [...text.data.matchAll(/[^\\s-]+-?/g)].filter((word) => isSplit(text, word)))
      .map(([word]) => word),
    hasColumns: document.querySelector("thead")?.checkVisibility() ?? false,
    torn: shown.filter((each) => each.matches("th span, td code") && each.innerText.length < 20)
      .map((each) => each.firstChild)
      .filter((text) => isSplit(text, Object.assign([text.data], { index: 0 })))
      .map(({ data }) => data),
    misaligned: shown.filter((each) => each.matches("td") && /^[\\d,]+$/.test(each.innerText))
      .filter((each) => {
        const head = each.closest("table").querySelectorAll("thead th")[each.cellIndex];
        return head.checkVisibility() && Math.abs(endOf(head) - endOf(each)) > 1;
      }).map((each) => each.outerHTML),
    widest: Math.max(0, ...bars.map((each) => each.getBoundingClientRect().width)),
    afloat: bars.filter((each) => Math.abs(each.getBoundingClientRect().bottom - axis(each)) > 1 &&
      each.getBoundingClientRect().top < axis(each)).map((each) => each.outerHTML),
    broken: shown.filter((each) => each.matches("time") && each.getClientRects().length > 1)
      .map((each) => each.outerHTML),
    bars: shown.filter((each) => each.matches("rect.calls") &&
      each.getBoundingClientRect().height >= 0.5).length,
    overflowing: [document.documentElement, ...shown].filter((each) => {
      const { right, left } = each.getBoundingClientRect();
      return right > innerWidth || left < 0 || each.scrollWidth > each.clientWidth + 1 &&
        getComputedStyle(each).display !== "inline";
    }).map((each) => each.outerHTML.slice(0, 80)),
    smallest: Math.min(...shown.filter((each) => each.innerText)
      .map((each) => parseFloat(getComputedStyle(each).fontSize))),
  };
})()`;
