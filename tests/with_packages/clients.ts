/** Who a server process says called. */

import { assertEquals } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { BROWSER, launchBrowser } from "../support/browser.ts";
import { openLocal } from "../support/local_storage.ts";
import { needing, program } from "../support/permissions.ts";
import { requestRaw } from "../support/raw_http.ts";
import { ServerProcess } from "../support/server.ts";

/** After the removal every valid token counts as a call, though nothing is published. */
const REMOVED = { DEPRECATED_AT: "1999-01-01", SUNSET_AT: "2000-01-01" };

needing(...BROWSER, program("curl"))(
  "a browser is counted under the site that it is on, and a program under its own name",
  async () => {
    await using subject = await openLocal();
    const server = await ServerProcess.start(REMOVED, subject.folder);
    const source = `${server.origin}/audio/${newToken()}`;
    await using site = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen() {} },
      () =>
        new Response(`<!DOCTYPE html><audio preload="auto" src="${source}"></audio>`, {
          headers: { "Content-Type": "text/html" },
        }),
    );
    await using browser = await launchBrowser();
    const page = await browser.newPage();
    await page.goto(`http://localhost:${site.addr.port}/private/page?user=jane`);
    await page.evaluate(`new Promise((resolve) => {
      const audio = document.querySelector("audio");
      if (audio.error !== null) resolve();
      else audio.addEventListener("error", resolve); // 410
    })`);
    await page.close();
    await new Deno.Command("curl", { args: ["-sI", source] }).output();
    await server.stop();
    const rows = await Array.fromAsync(subject.storage.ledger.usage(""));
    assertEquals(rows.map(({ client }) => client).sort(), ["app curl", "site localhost"]);
  },
);

needing("processes")("CLIENT_FIELD names the clients that send it", async () => {
  await using subject = await openLocal();
  const settings = { ...REMOVED, CLIENT_FIELD: "X-Consumer" };
  const server = await ServerProcess.start(settings, subject.folder);
  const consumers = ["team 7", newToken(), "x".repeat(65), "\u00fc", "", undefined];
  for (const consumer of consumers) {
    const fields = consumer === undefined ? {} : { "X-Consumer": consumer };
    const agent = { "User-Agent": "okhttp/4" };
    await requestRaw(server.port, "HEAD", `/audio/${newToken()}`, { ...fields, ...agent });
  }
  await server.stop();
  const rows = await Array.fromAsync(subject.storage.ledger.usage(""));
  const counts = rows.map(({ client, calls }) => `${client}: ${calls}`);
  assertEquals(counts, ["(other): 3", "app okhttp: 1", `id ${consumers[1]}: 1`, "id team 7: 1"]);
});
