import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { usagePage } from "../../lib/report/page.ts";
import type { UsageReport } from "../../lib/report/report.ts";
import { checkAccessibility, launchBrowser, testInBrowser } from "../support/browser.ts";
import { ALWAYS, heartbeat, report, row, ROWS } from "../support/usage_report.ts";

const NAMES = [
  `<img/src=x>&'"`,
  "A-Client-With-A-Name-Of-Sixty-Four-Characters-Which-Is-The-Most-",
  ...Array.from({ length: 30 }, (_, index) => `app C${10 + index}`),
];
const CALLED = [...ROWS, row(2, "zebra", 10_000), ...NAMES.map((name) => row(3, name, 2))];

/** Reports, and what their pages show: client names that are not folded away, and bars of calls. */
const PAGES: [what: string, report: () => Promise<UsageReport>, names: string[], bars: number][] = [
  [
    "many and hostile names",
    () => report(CALLED, ALWAYS, { days: 30 }),
    ["zebra", "Overcast", "curl", "Forgotten", ...NAMES].slice(0, 25),
    8,
  ],
  ["one client", () => report(CALLED, ALWAYS, { client: "curl" }), ["curl"], 1],
  ["no calls", () => report([], [heartbeat(300, 1)], { days: 30 }), [], 0],
];

// Only a browser renders the page.
testInBrowser(
  "the report page is whole, accessible and legible on any screen, and loads nothing",
  async () => {
    const file = await Deno.makeTempFile({ suffix: ".html" });
    await using browser = await launchBrowser();
    for (const [what, makeReport, names, bars] of PAGES) {
      await Deno.writeTextFile(file, usagePage(await makeReport()));
      for (const [colorScheme, width] of [["light", 1000], ["dark", 320]] as const) {
        const viewport = { width, height: 800 };
        const context = await browser.newContext({ colorScheme, viewport, bypassCSP: true });
        const page = await context.newPage();
        const requests: string[] = [];
        page.on("request", (request) => requests.push(request.url()));
        await page.goto(`file://${file}`);
        const seen = `${what}, ${colorScheme}, ${width} px`;
        const shown =
          "[...document.querySelectorAll('tbody th')].filter((name) => name.checkVisibility())";
        assertEquals(await page.evaluate(`${shown}.map((name) => name.innerText)`), names, seen);
        await page.evaluate(
          "document.querySelectorAll('details').forEach((each) => each.open = true)",
        );
        const layout = await page.evaluate(MEASURE) as Layout;
        assertEquals(layout.bars, bars, seen);
        assertEquals(layout.overflowing, [], `${seen}: wider than the screen, or scrolling inside`);
        assert(layout.smallest >= 12, `${seen}: text of ${layout.smallest} px`);
        assertEquals((await checkAccessibility(page)).violations, [], seen);
        assertEquals(requests, [`file://${file}`]);
        await context.close();
      }
    }
    await Deno.remove(file);
  },
);

Deno.test("the report page says the verdict, then who calls, then each route's days, then the rules", async () => {
  const page = usagePage(await report(CALLED, [heartbeat(160, 0)], { ignore: ["zebra"] }));
  const parts = [
    "<strong>Still called: 160 calls to /audio/:token and /video/:token by 34 clients since 2027-06-08",
    "<li>Ignored: zebra, 10,000 calls</li>",
    `<td data-label="Last seen">2027-06-15T13:00:00Z</td>`,
    "/audio/{token}",
    "<title>2027-06-09: 5 calls, brownout</title>",
    "calls, at most 10,000 a day",
    "<li>2027-06-09: 5 calls, brownout</li>\n<li>2027-06-10: 0 calls, brownout of 2027-06-10T09:00:00Z</li>",
    "/video/{token}",
    "60 calls. Sunset: 2027-06-17T00:00:00Z, in 36 hours.",
    "<li>2027-06-08: 0 calls, incomplete record</li>",
    "A call is a GET or HEAD",
  ];
  const found = parts.map((part) => {
    assertStringIncludes(page, part);
    return page.indexOf(part);
  });
  assertEquals(found, found.toSorted((a, b) => a - b));
  const one = usagePage(await report(CALLED, ALWAYS, { client: "curl" }));
  assert(!/Overcast|zebra|10,000/.test(one), "another client's");
});

interface Layout {
  readonly bars: number;
  readonly overflowing: readonly string[];
  readonly smallest: number;
}

/** Measures the layout in the page. */
const MEASURE = `(() => {
  const shown = [...document.querySelectorAll("main *")].filter((each) => each.checkVisibility());
  return {
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
