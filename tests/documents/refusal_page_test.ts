import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { definePolicy } from "../../lib/lifecycle/policy_settings.ts";
import { launchBrowser, readAxe, testInBrowser } from "../support/browser.ts";
import { servedHandler } from "../support/handlers.ts";
import { INSTANTS, SETTINGS } from "../support/notice_pages.ts";
import { OneItem } from "../support/one_item.ts";
import { checkParity, seen } from "../server/request_table.ts";

const HTML = "text/html; charset=utf-8";
const JSON_TYPE = "application/problem+json";
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/** Accept, and the type that it gets. */
const PREFERENCES: readonly (readonly [accept: string | undefined, type: string])[] = [
  [undefined, JSON_TYPE],
  ["*/*", JSON_TYPE],
  ["audio/webm,audio/ogg;q=0.9,*/*;q=0.5", JSON_TYPE],
  ["application/json", JSON_TYPE],
  ["text/html;q=0.5, application/json", JSON_TYPE],
  ["text/html;q=0", JSON_TYPE],
  [BROWSER, HTML],
  ["text/html, application/json;q=0.5", HTML],
];

const token = newToken();
const STATES = [
  ["brownout", INSTANTS.brownout, 503],
  ["removed", INSTANTS.removed, 410],
] as const;

/** The handler as served, at an instant. */
function handlerAt(instant: string) {
  const handle = servedHandler({
    storage: new OneItem(),
    config: { policy: definePolicy(SETTINGS), cacheMaxAge: 300 },
    clock: () => Date.parse(instant),
    log() {},
  });
  return async (method: string, target: string, accept?: string) => {
    const headers = new Headers(accept === undefined ? {} : { Accept: accept });
    return await handle(new Request(`http://test${target}`, { method, headers }));
  };
}

for (const [phase, instant, status] of STATES) {
  Deno.test(`${phase}: who prefers HTML gets a page, and everyone else what they got before`, async () => {
    const send = handlerAt(instant);
    for (let times = 0; times < 3; times++) { // prepared from the second time on
      for (const [accept, type] of PREFERENCES) {
        const what = `${accept}, time ${times}`;
        const [get, head] = [
          await send("GET", `/audio/${token}`, accept),
          await send("HEAD", `/audio/${token}`, accept),
        ];
        assertEquals([get.status, get.headers.get("content-type")], [status, type], what);
        assertEquals(get.headers.get("vary"), "Accept", what);
        const body = await get.clone().text();
        assertEquals(body.startsWith("<!DOCTYPE html>"), type === HTML, what);
        checkParity(what, await seen(head), await seen(get));
      }
    }
  });
}

Deno.test("a refusal's page says what happened and where the item is, without a script", async () => {
  const texts = {
    brownout: [/works again from .*2027-05-03 17:30 UTC.* removed for good at .*2027-06-30/],
    removed: [/It worked until .*2027-06-30 12:00 UTC/],
  };
  for (const [phase, instant] of STATES) {
    const response = await handlerAt(instant)("GET", `/audio/${token}`, BROWSER);
    const html = await response.text();
    for (const text of texts[phase]) assertMatch(html, text);
    assertStringIncludes(html, `<a href="/media/${token}">`);
    assertStringIncludes(html, '<a href="/deprecation">');
    assertStringIncludes(html, '<meta name="robots" content="noindex">');
    assert(!html.includes("<script"));
    const policy = response.headers.get("content-security-policy");
    assertMatch(policy ?? "", /^default-src 'none'; style-src 'sha256-[^']*'; img-src data:;/);
    const hostile = await handlerAt(instant)("GET", "/audio/%3Cscript%3E", BROWSER);
    const page = await hostile.text();
    assert(!page.includes("script") && !page.includes("/media/"), page);
  }
});

// Only a browser knows colours and sizes.
testInBrowser("axe finds no violations on a refusal's page, and nothing sticks out", async () => {
  const axe = await readAxe();
  await using browser = await launchBrowser();
  for (const [, instant] of STATES) {
    const response = await handlerAt(instant)("GET", `/audio/${token}`, BROWSER);
    const html = await response.text();
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await browser.newPage({ colorScheme, viewport: { width: 320, height: 568 } });
      const complaints: string[] = [];
      page.on("console", (message) => complaints.push(message.text()));
      await page.route("**/*", (route) =>
        route.fulfill({
          contentType: HTML,
          headers: { "Content-Security-Policy": policy },
          body: html,
        }));
      await page.goto(`http://media.test/audio/${token}`);
      assertEquals(await page.evaluate("document.documentElement.scrollWidth"), 320);
      await page.evaluate(axe);
      const { violations } = await page.evaluate("axe.run()") as { violations: { id: string }[] };
      assertEquals(violations.map(({ id }) => id), []);
      assertEquals(complaints, []);
      await page.close();
    }
  }
});
