/** A real browser, for what only a browser shows. */

// deno-lint-ignore-file no-import-prefix -- a start would download what the import map has

import { assert } from "@std/assert";
import type { Browser, BrowserContextOptions, Page } from "npm:playwright-core@1.65.1";
import { isFile, needing } from "./permissions.ts";

/** The path of Chromium: CHROMIUM, or else Debian's. */
const executable = () => Deno.env.get("CHROMIUM") || "/usr/bin/chromium";

/** What tests in a browser need. */
export const BROWSER = [
  "processes",
  { what: "chromium", isMet: () => isFile(executable()) },
] as const;

/** Registers tests that need a browser. */
export const testInBrowser = needing(...BROWSER);

/**
 * Starts headless Chromium with a fresh profile. It ends when disposed of, or when this process
 * ends in any way: the two are connected by a pipe.
 */
export async function launchBrowser(): Promise<Browser> {
  // Loaded here, because it reads the environment.
  const { chromium } = await import("npm:playwright-core@1.65.1");
  return await chromium.launch({
    executablePath: executable(),
    args: [
      "--disable-gpu",
      "--disable-quic",
      "--autoplay-policy=no-user-gesture-required", // nobody presses "play"
    ],
  });
}

export type { BrowserContextOptions, Page };

/** Returns what axe finds wrong with a page's accessibility, and what it could not decide. */
export async function checkAccessibility(page: Page) {
  const { default: axe } = await import("npm:axe-core@4.14.1");
  await page.evaluate(axe.source);
  // Selectors are not shown, and take most of the time.
  const options = `{ resultTypes: ["violations", "incomplete"], selectors: false }`;
  const [violations, undecided, passes] = await page.evaluate(`axe.run(${options}).then((results) =>
    [results.violations, results.incomplete, results.passes].map((rules) =>
      rules.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" "))
    )
  )`) as [string[], string[], string[]];
  assert(passes.some((rule) => rule.startsWith("color-contrast")), "no colours were checked");
  return { violations, undecided };
}
