/** `deno task pictures`: makes README's pictures of the notice and of the operator's report. */

import { PROGRAM } from "../../lib/cli/usage.ts";
import { usagePage } from "../../lib/usage/output/operator_page.ts";
import { launchBrowser } from "../support/browser.ts";
import { fromRoot } from "../support/paths.ts";
import { liveThroughYear } from "./year.ts";

/** Reduces the colours, of which text has few: a third of the bytes. */
const FILTER =
  "split[a][b];[a]palettegen=max_colors=64[colours];[b][colours]paletteuse=dither=none";

await using year = await liveThroughYear();
const notice = await year.answer(new Request("http://localhost/deprecation"));
/** Each page from its top to an element, and the width of the picture. */
const pages = {
  notice: { html: await notice.text(), width: 800, last: ".facts + ul" },
  report: { html: usagePage(await year.report(), PROGRAM), width: 1_280, last: "figcaption" },
};
/** Pixels below that element. */
const MARGIN = 12;
const browser = await launchBrowser();
try {
  for (const [name, { html, width, last }] of Object.entries(pages)) {
    // In another time zone, the notice adds local times.
    const viewport = { width, height: 800 };
    const page = await browser.newPage({ viewport, timezoneId: "UTC" });
    await page.setContent(html);
    const box = await page.locator(last).first().boundingBox();
    if (box === null) throw new Error(`The ${name} has no ${last}`);
    const clip = { x: 0, y: 0, width, height: box.y + box.height + MARGIN };
    const encoder = new Deno.Command("ffmpeg", {
      args: ["-loglevel", "error", "-i", "-", "-vf", FILTER, "-y", fromRoot(`.github/${name}.png`)],
      stdin: "piped",
    }).spawn();
    const writer = encoder.stdin.getWriter();
    await writer.write(await page.screenshot({ clip, fullPage: true }));
    await writer.close();
    const { success } = await encoder.status;
    if (!success) throw new Error(`ffmpeg could not encode ${name}.png`);
  }
} finally {
  await browser.close();
}
