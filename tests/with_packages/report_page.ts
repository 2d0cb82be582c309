import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { usagePage } from "../../lib/report/page.ts";
import { launchBrowser, readAxe, testInBrowser } from "../support/browser.ts";
import { ALWAYS, report, row, ROWS } from "../support/usage_report.ts";

// Only a browser renders the page.
testInBrowser(
  "the report page loads nothing, is accessible and legible, and shows each day's calls as a bar",
  async () => {
    const hostile = `<img/src=x>&'"`;
    const long = "A-Client-With-A-Name-Of-Sixty-Four-Characters-Which-Is-The-Most-";
    const unbroken = "A".repeat(64);
    const rows = [
      ...ROWS,
      row(1, hostile, 2),
      row(2, "zebra", 10_000),
      row(3, long, 3),
      row(5, "AppleCoreMedia", 3),
      row(4, unbroken, 2),
    ];
    const html = usagePage(await report(rows, ALWAYS, { days: 30 }));
    assert(!html.includes(hostile), "a client's name is not escaped");
    const file = await Deno.makeTempFile({ suffix: ".html" });
    await Deno.writeTextFile(file, html);
    const axe = await readAxe();
    await using browser = await launchBrowser();
    const looks = [["light", 1280], ["dark", 360], ["light", 320], ["dark", 320]] as const;
    for (const [colorScheme, width] of looks) {
      const viewport = { width, height: 800 };
      const context = await browser.newContext({ colorScheme, viewport, bypassCSP: true });
      const page = await context.newPage();
      const requests: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(`file://${file}`);
      const names = () => page.locator("table.clients tbody th").allInnerTexts();
      const byCalls = [
        "zebra",
        "Overcast",
        "curl",
        "Forgotten",
        "AppleCoreMedia",
        long,
        hostile,
        unbroken,
      ];
      assertEquals((await names()).toSorted(), byCalls.toSorted());
      assertEquals((await names()).slice(0, 4), byCalls.slice(0, 4));
      const days = await page.locator(".days").allInnerTexts(); // of two routes
      assertEquals(days.length, 2);
      for (const text of days) {
        assertStringIncludes(text, "window 2027-06-10T09:00:00Z to 2027-06-10T17:00:00Z");
        assertMatch(text, /^Day.*\n2027-06-15.*\n/);
      }

      const layout = await page.evaluate(MEASURE) as Layout;
      assertEquals(layout.overflow, 0, "the page is wider than the screen");
      assert(layout.smallest >= 11, `text of ${layout.smallest} px`);
      assertEquals(layout.hidden, [], "cells that are not on the screen");
      assertEquals(layout.broken, [], "names that break inside a word");
      assertEquals(layout.left, [], "numbers that are not right-aligned");
      assertEquals(layout.bars, 11, "bars on the screen");
      await page.evaluate(axe);
      const violations = await page.evaluate(
        "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))",
      );
      assertEquals(violations, []);
      assertEquals(requests, [`file://${file}`]);
      await context.close();
    }
    await Deno.remove(file);
  },
);

interface Layout {
  readonly overflow: number;
  readonly smallest: number;
  readonly hidden: readonly string[];
  readonly broken: readonly string[];
  readonly left: readonly string[];
  readonly bars: number;
}

/** Measures the layout in the page, with text at its rendered size. */
const MEASURE = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const sizes = all("main *").filter((element) => element.innerText)
    .map((element) => parseFloat(getComputedStyle(element).fontSize));
  const lines = (element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
  };
  return {
    overflow: document.documentElement.scrollWidth - innerWidth,
    smallest: Math.min(...sizes),
    hidden: all("table.clients :is(th, td)").filter((cell) => {
      const { left, right } = cell.getBoundingClientRect();
      return left < 0 || right > innerWidth || cell.scrollWidth > cell.clientWidth;
    }).map((cell) => cell.innerText),
    broken: all("table.clients tbody th").filter((name) => name.innerText.includes("-") && lines(name) > name.innerText.split("-").length).map((name) => name.innerText),
    left: all("td").filter((cell) => /^[\\d,]+$/.test(cell.innerText) && getComputedStyle(cell).textAlign !== "right")
      .map((cell) => cell.innerText),
    bars: all(".bars span").filter(({ clientWidth }) => clientWidth > 0).length,
  };
})()`;
