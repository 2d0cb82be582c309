import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import {
  BROWSER,
  type BrowserContextOptions,
  checkAccessibility,
  launchBrowser,
  type Page,
  testInBrowser,
} from "../support/browser.ts";
import { shared } from "../support/permissions.ts";
import { PROBLEM_TYPES } from "../../lib/server/problem_types.ts";
import { PHASES } from "../../lib/lifecycle/policy.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { INSTANTS, OPEN, pageAt, POLICY, REDIRECTING, SETTINGS } from "../support/notice_pages.ts";

const ORIGIN = "https://media.example";

const browser = shared(BROWSER, launchBrowser);

const LATER = definePolicy({ ...SETTINGS, deprecatedAt: "2027-06-01", brownouts: [] });

/** The pages to test: every phase, and policies without optional settings. */
const STATES: [name: string, page: ReturnType<typeof pageAt>][] = [
  ...PHASES.map((phase): [string, ReturnType<typeof pageAt>] => [phase, pageAt(INSTANTS[phase])]),
  ["deprecated, the brownouts over", pageAt("2027-06-20T00:00Z")],
  ["deprecated without a sunset", pageAt(INSTANTS.deprecated, OPEN)],
  ["removed, redirecting", pageAt(INSTANTS.removed, REDIRECTING)],
  ["two paths in different phases", pageAt(INSTANTS.brownout, POLICY, LATER)],
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
  notice: ReturnType<typeof pageAt>,
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
        const { page, requests, complaints } = await visit(notice, {
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
  const notice = pageAt(INSTANTS.deprecated);
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
      const { page } = await visit(pageAt(INSTANTS.deprecated), { timezoneId });
      const shown = await page.locator(".facts .local").allInnerTexts();
      // Some versions of the locale data put a narrow space before AM and PM.
      assertEquals(shown.map((text) => text.replaceAll(/\s/g, " ").trim()), locals, timezoneId);
      await page.context().close();
    }
  },
);

const OUTLINE = `getComputedStyle(document.querySelector(":target")).outlineStyle`;

// Only a browser follows a fragment.
testInBrowser("a problem's type links to its explanation, which is highlighted", async () => {
  const { page } = await visit(pageAt(INSTANTS.deprecated), {});
  for (const [name, { title }] of Object.entries(PROBLEM_TYPES)) {
    await page.goto(`${ORIGIN}/deprecation#${name}`);
    const target = page.locator(":target");
    assertStringIncludes(await target.innerText(), title);
    assertEquals(await target.evaluate(OUTLINE), "solid");
  }
  await page.context().close();
});
