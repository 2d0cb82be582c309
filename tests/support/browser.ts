/**
 * A real browser, for what only a browser shows.
 */

// deno-lint-ignore no-import-prefix -- the server's lock is to have none of the tests' packages
import type { Browser, BrowserContextOptions, Page } from "npm:playwright-core@1.65.1";
import { isFile, needing } from "./permissions.ts";

/** Where Chromium is: CHROMIUM, or else where Debian puts it. */
const executable = () => Deno.env.get("CHROMIUM") || "/usr/bin/chromium";

/** What a browser needs. */
export const BROWSER = [
  "processes",
  { what: "chromium", isMet: () => isFile(executable()) },
] as const;

/** Registers tests that need a browser. */
export const testInBrowser = needing(...BROWSER);

/**
 * Starts Chromium without a window, in a profile of its own. Disposing of it ends it, and so does
 * the end of this process, however it comes: the two are connected by a pipe.
 */
export async function launchBrowser(): Promise<Browser> {
  // Loaded here, because it reads the environment.
  // deno-lint-ignore no-import-prefix -- the server's lock is to have none of the tests' packages
  const { chromium } = await import("npm:playwright-core@1.65.1");
  return await chromium.launch({
    executablePath: executable(),
    args: [
      "--disable-gpu",
      "--disable-quic",
      "--autoplay-policy=no-user-gesture-required", // nobody is there to press "play"
    ],
  });
}

export type { Browser, BrowserContextOptions, Page };

/** The script of axe, which looks for what keeps people from using a page. */
export async function readAxe(): Promise<string> {
  // deno-lint-ignore no-import-prefix -- the server's lock is to have none of the tests' packages
  const { default: axe } = await import("npm:axe-core@4.14.1");
  return axe.source;
}
