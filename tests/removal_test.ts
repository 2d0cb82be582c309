/**
 * The last day of the product's life: the two deprecated lines of the routes are deleted, and what
 * is left works, and still reports who called.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { dirname, join } from "node:path";
import { DAY_MS } from "../lib/http/timestamp.ts";
import { copyProject } from "./support/copy.ts";
import { openLocal } from "./support/local_storage.ts";
import { inFolder } from "./support/media_cli.ts";
import { needing } from "./support/permissions.ts";
import { field, requestRaw } from "./support/raw_http.ts";
import { mustRun, runProgram } from "./support/run.ts";
import { ServerProcess, storageIn, taskFlags } from "./support/server.ts";
import { newMetadata } from "./storage/storage_suite.ts";

const CALLER = { "User-Agent": "Overcast/3.0" };

/** Publishes an item, and has a client call its deprecated path once. */
async function callOnce(
  subject: Awaited<ReturnType<typeof openLocal>>,
  settings: Record<string, string> = {},
) {
  const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1000));
  await using server = await ServerProcess.start(settings, subject.folder);
  assertEquals((await requestRaw(server.port, "HEAD", `/audio/${token}`, CALLER)).status, 200);
  return token;
}

/** Runs the program of a copy of the project, on storage in a folder. */
function runMain(main: string, folder: string, ...words: string[]) {
  const env = { ...storageIn(folder), PORT: "8000", NO_COLOR: "1" };
  return runProgram(Deno.execPath(), ["run", ...taskFlags(main), main, ...words], { env });
}

/** Returns the page for the owner of the client. */
async function ownerPage(main: string, folder: string): Promise<string> {
  const page = join(dirname(main), "page.html");
  const words = ["media", "usage", "--client", "app Overcast", "--html", page];
  const { code, stderr } = await runMain(main, folder, ...words);
  assertEquals(code, 0, stderr);
  return await Deno.readTextFile(page);
}

needing("processes")(
  "without the deprecated routes, the rest type-checks, is served, and still reports who called",
  () =>
    inFolder(async (folder) => {
      await using subject = await openLocal();
      const token = await callOnce(subject, { SUNSET_AT: "2998-01-01" });
      copyProject(folder, []);
      const main = join(folder, "main.ts");
      for (const words of [["check", "main.ts", "lib"], ["lint", "main.ts"]]) {
        await mustRun(Deno.execPath(), words, { cwd: folder });
      }

      const server = await ServerProcess.start(
        { SUNSET_AT: "2999-01-01,video=2999-02-01", BROWNOUTS: "2026-11-22/2998-01-01" },
        subject.folder,
        { main },
      );
      const get = (path: string, fields = {}) => requestRaw(server.port, "GET", path, fields);
      const text = async (path: string, fields = {}) =>
        new TextDecoder().decode((await get(path, fields)).content);
      assertEquals((await get(`/media/${token}`)).status, 200);
      const gone = await get(`/audio/${token}`);
      assertEquals([gone.status, field(gone, "deprecation")], [404, undefined]);
      assertMatch(await text(`/audio/${token}`), /"type":"\/deprecation#no-such-route"/);
      assertEquals((await get("/healthz")).status, 200);
      const page = await text("/deprecation", { Accept: "text/html" });
      assertMatch(page, /<h1>The older paths .*<\/h1>/);
      assertMatch(page, /<li><code>\/media\/\{token\}<\/code>: published audio or video<\/li>/);
      assert(!page.includes('id="brownout"'), page);
      assert(!page.includes("audio/") && page.includes('id="removed"'), page);
      const notice = JSON.parse(await text("/deprecation", { Accept: "application/json" }));
      assertEquals([notice.phase, notice.afterSunset, notice.endpoints], [
        "removed",
        undefined,
        [],
      ]);
      const { info, paths } = JSON.parse(await text("/openapi.json"));
      assert(!info.description.startsWith("Serves published media, with"), info.description);
      assertEquals(Object.keys(paths), [
        "/media/{token}",
        "/deprecation",
        "/openapi.json",
        "/healthz",
      ]);

      const media = (...words: string[]) => runMain(main, subject.folder, "media", ...words);
      const gate = await media("usage", "--gate", "1");
      assertEquals([gate.code, gate.stderr], [1, ""]);
      assertMatch(gate.stdout, /^Still called: 1 call to \/audio\/:token /);
      assertMatch(gate.stdout, /^\/video\/:token: unknown\b.* no process /m);
      assertMatch(
        (await media("usage")).stdout,
        /\/audio\/:token: called, 1 call, .* Sunset: 2998/,
      );
      const shown = await media("show", token);
      assertMatch(shown.stdout, new RegExp(`\nHEAD /media/${token}\n200\n`));
      assert(!shown.stdout.includes("/audio/"), shown.stdout);
      const mailed = await ownerPage(main, subject.folder);
      assertMatch(mailed, /paths that were removed<\/h1>/);
      assertMatch(
        mailed,
        /<code>\/audio\/\{token\}<\/code> becomes <code>\/media\/\{token\}<\/code>/,
      );
      assertMatch(mailed, /: it answers <code>404<\/code>/);
      assert(!/[Ee]ventually|brownout that|Once removed/.test(mailed), mailed);
      const since = new Date(Date.now() - 30 * DAY_MS).toISOString().slice(0, 10);
      const { log } = await server.stop();
      const messages = log.filter(({ event }) => event === "warning").map(({ message }) => message);
      assertEquals(messages.length, 1);
      assertMatch(String(messages[0]), new RegExp(`^/audio/:token .* ${since}, .* app Overcast$`));
      const checked = await runMain(main, subject.folder, "--check");
      assertEquals(checked.code, 0, checked.stderr);
      const lines = checked.stdout.split("\n").filter((line) => line.startsWith("Warning: "));
      assertEquals(lines, [`Warning: ${messages[0]}`]);
    }),
);

needing("processes")(
  "an owner reads of a deleted route while another is still served",
  () =>
    inFolder(async (folder) => {
      await using subject = await openLocal();
      await callOnce(subject);
      copyProject(folder, ["video"]);
      const main = join(folder, "main.ts");
      await using _server = await ServerProcess.start({}, subject.folder, { main });
      const mailed = await ownerPage(main, subject.folder);
      assertMatch(mailed, /Overcast still calls paths that were removed<\/h1>/);
      assertMatch(mailed, /: it answers <code>404<\/code>/);
    }),
);
