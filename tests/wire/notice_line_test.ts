/** The line for a shell that the notice gives to clients, in each phase. */

import { assertEquals, assertMatch } from "@std/assert";
import { publishFile } from "../../lib/publishing/publish.ts";
import { newToken } from "../../lib/storage/token.ts";
import { openLocal } from "../support/local_storage.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { needing, program } from "../support/permissions.ts";
import { freePort } from "../support/ports.ts";
import { runProgram } from "../support/run.ts";
import { ServerProcess } from "../support/server.ts";

/** Returns the line on a notice, as a browser shows it. */
async function lineOn(server: ServerProcess): Promise<string | undefined> {
  const page = await (await fetch(`${server.origin}/deprecation`)).text();
  const [, line] = /<code>(curl [^<]*)<\/code>/.exec(page) ?? [];
  return line?.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(code));
}

needing("processes", program("sh"), program("curl"), program("awk"))(
  "the notice's line for the shell fails for an old path in each phase, and says why",
  async () => {
    await using subject = await openLocal();
    const { token } = await publishFile(subject.storage, SAMPLE_MP3);
    const past = { DEPRECATED_AT: "2020-01-01" };
    const brownout = { ...past, SUNSET_AT: "2999-01-01", BROWNOUTS: "2021-01-01/2998-01-01" };
    const removed = { ...past, SUNSET_AT: "2021-01-01" };
    const rows: [phase: string, settings: Record<string, string>, reasons: RegExp][] = [
      ["announced", { DEPRECATED_AT: "2999-01-01" }, /^Deprecation: @/],
      ["deprecated", { ...past, SUNSET_AT: "2999-01-01" }, /^Deprecation: @.*\r?\nSunset: /],
      ["brownout", brownout, /^HTTP\/1\.1 503 [^]*\nSunset: /],
      ["brownout with 410", { ...brownout, BROWNOUT_STATUS: "410" }, /^HTTP\/1\.1 410 /],
      ["removed", removed, /^HTTP\/1\.1 410 [^]*\nSunset: /],
      [
        "removed, redirected",
        { ...removed, AFTER_SUNSET: "redirect" },
        /^Deprecation: @.*\r?\nSunset: /,
      ],
    ];
    const lines = new Set<string>();
    for (const [phase, settings, reasons] of rows) {
      await using server = await ServerProcess.start(settings, subject.folder);
      const found = await lineOn(server);
      if (found !== undefined) lines.add(found);
      else assertEquals(phase, "removed"); // when no client can still move
      const [line = ""] = lines;
      const run = async (url: string) => {
        const args = ["-e", "-c", line.replace("URL", url)];
        const { code, stdout: said } = await runProgram("sh", args);
        return { code, said };
      };
      const old = await run(`${server.origin}/audio/${token}`);
      assertEquals(old.code, 1, phase);
      assertMatch(old.said, reasons, phase);
      assertEquals(await run(`${server.origin}/media/${token}`), { code: 0, said: "" }, phase);
      const unknown = await run(`${server.origin}/media/${newToken()}`);
      assertEquals(unknown.code, 1);
      assertMatch(unknown.said, /^HTTP\/1\.1 404 /);
      assertEquals((await run(`http://127.0.0.1:${freePort()}/`)).code, 1);
    }
    assertEquals(lines.size, 1);
  },
);
