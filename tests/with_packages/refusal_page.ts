import { assertEquals } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { launchBrowser, readAxe, testInBrowser } from "../support/browser.ts";
import { handlerAt, INSTANTS } from "../support/notice_pages.ts";

// Only a browser knows colours and sizes.
testInBrowser("axe finds no violations on a refusal's page, and nothing sticks out", async () => {
  const axe = await readAxe();
  await using browser = await launchBrowser();
  for (const instant of [INSTANTS.brownout, INSTANTS.removed]) {
    const path = `/audio/${newToken()}`;
    const response = await handlerAt(instant)("GET", path, "text/html");
    const html = await response.text();
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await browser.newPage({ colorScheme, viewport: { width: 320, height: 568 } });
      const complaints: string[] = [];
      page.on("console", (message) => complaints.push(message.text()));
      await page.route("**/*", (route) =>
        route.fulfill({
          contentType: "text/html; charset=utf-8",
          headers: { "Content-Security-Policy": policy },
          body: html,
        }));
      await page.goto(`http://media.test${path}`);
      assertEquals(await page.evaluate("document.documentElement.scrollWidth"), 320);
      await page.evaluate(axe);
      const { violations } = await page.evaluate("axe.run()") as { violations: { id: string }[] };
      assertEquals(violations.map(({ id }) => id), []);
      assertEquals(complaints, []);
      await page.close();
    }
  }
});
