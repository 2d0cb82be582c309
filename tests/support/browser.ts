/**
 * A real browser, for what only a browser shows.
 */

import type { Browser } from "playwright-core";
import { isFile, needing } from "./permissions.ts";

/** Where Chromium is: CHROMIUM, or else where Debian puts it. */
const executable = () => Deno.env.get("CHROMIUM") || "/usr/bin/chromium";

/** Registers tests that need a browser. */
export const testInBrowser = needing("processes", {
  what: "chromium",
  isMet: () => isFile(executable()),
});

/**
 * Starts Chromium without a window, in a profile of its own. Disposing of it ends it, and so does
 * the end of this process, however it comes: the two are connected by a pipe.
 */
export async function launchBrowser(): Promise<Browser> {
  const { chromium } = await import("playwright-core"); // it reads the environment when it is loaded
  return await chromium.launch({
    executablePath: executable(),
    args: [
      "--disable-gpu",
      "--disable-quic",
      "--autoplay-policy=no-user-gesture-required", // nobody is there to press "play"
    ],
  });
}
