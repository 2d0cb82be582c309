/** `deno task pictures`: makes README's picture of the operator's report. */

import { PROGRAM } from "../../lib/cli/usage.ts";
import { usagePage } from "../../lib/usage/output/operator_page.ts";
import { launchBrowser } from "../support/browser.ts";
import { fromRoot } from "../support/paths.ts";
import { liveThroughYear } from "./year.ts";

/** Reduces the colours, of which text has few: a third of the bytes. */
const FILTER =
  "split[a][b];[a]palettegen=max_colors=64[colours];[b][colours]paletteuse=dither=none";

await using year = await liveThroughYear();
const WIDTH = 1_280;
/** The element with which the picture ends, and the pixels below it. */
const [LAST, MARGIN] = ["figcaption", 12];
const browser = await launchBrowser();
try {
  const page = await browser.newPage({ viewport: { width: WIDTH, height: 800 } });
  await page.setContent(usagePage(await year.report(), PROGRAM));
  const box = await page.locator(LAST).first().boundingBox();
  if (box === null) throw new Error(`The report has no ${LAST}`);
  const clip = { x: 0, y: 0, width: WIDTH, height: box.y + box.height + MARGIN };
  const encoder = new Deno.Command("ffmpeg", {
    args: ["-loglevel", "error", "-i", "-", "-vf", FILTER, "-y", fromRoot(".github/report.png")],
    stdin: "piped",
  }).spawn();
  const writer = encoder.stdin.getWriter();
  await writer.write(await page.screenshot({ clip, fullPage: true }));
  await writer.close();
  const { success } = await encoder.status;
  if (!success) throw new Error("ffmpeg could not encode the picture");
} finally {
  await browser.close();
}
