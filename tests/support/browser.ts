/**
 * A real browser, for what only a browser shows.
 */

import { type Browser, chromium } from "playwright-core";

/** Where Chromium is: CHROMIUM, or else where Debian puts it. */
const EXECUTABLE = Deno.env.get("CHROMIUM") || "/usr/bin/chromium";

/** Whether there is a browser to start; without one, tests that need it are to be ignored. */
export const HAS_BROWSER = isFile(EXECUTABLE);

/**
 * Starts Chromium without a window, in a profile of its own. Disposing of it ends it, and so does
 * the end of this process, however it comes: the two are connected by a pipe.
 */
export async function launchBrowser(): Promise<Browser> {
  return await chromium.launch({
    executablePath: EXECUTABLE,
    args: [
      "--disable-gpu",
      "--disable-quic",
      "--autoplay-policy=no-user-gesture-required", // nobody is there to press "play"
    ],
  });
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
