/**
 * The last day of the product's life: the two deprecated lines of the routes are deleted, and what
 * is left works, and still reports who called.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { join } from "node:path";
import { DAY_MS } from "../lib/http/timestamp.ts";
import { copyProject } from "./support/copy.ts";
import { openLocal } from "./support/local_storage.ts";
import { inFolder } from "./support/media_cli.ts";
import { needing } from "./support/permissions.ts";
import { field, requestRaw } from "./support/raw_http.ts";
import { ServerProcess, storageIn, taskFlags } from "./support/server.ts";
import { newMetadata } from "./storage/storage_suite.ts";

/** Runs Deno, and returns its exit status and output. */
async function deno(args: string[], options: Deno.CommandOptions) {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, ...options })
    .output();
  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out: out ?? "", err: err ?? "" };
}

needing("processes")(
  "without the deprecated routes, the rest type-checks, is served, and still reports who called",
  () =>
    inFolder(async (folder) => {
      await using subject = await openLocal();
      const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1000));
      const before = await ServerProcess.start({ SUNSET_AT: "2998-01-01" }, subject.folder);
      const caller = { "User-Agent": "Overcast/3.0" };
      const called = await requestRaw(before.port, "HEAD", `/audio/${token}`, caller);
      assertEquals(called.status, 200);
      await before.stop();

      copyProject(folder, []);
      const main = join(folder, "main.ts");
      const types = await deno(["check", "main.ts", "lib"], { cwd: folder });
      assertEquals(types.code, 0, types.err);
      const linted = await deno(["lint", "main.ts"], { cwd: folder });
      assertEquals(linted.code, 0, linted.err);

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

      const media = (...args: string[]) =>
        deno(["run", ...taskFlags(main), main, "media", ...args], {
          env: { ...storageIn(subject.folder), NO_COLOR: "1" },
        });
      const gate = await media("usage", "--gate", "1");
      assertEquals([gate.code, gate.err], [1, ""]);
      assertMatch(gate.out, /^Still called: 1 call to \/audio\/:token /);
      assertMatch(gate.out, /^\/video\/:token: unknown\b.* no process /m);
      assertMatch((await media("usage")).out, /\/audio\/:token: called, 1 call, .* Sunset: 2998/);
      const shown = await media("show", token);
      assertMatch(shown.out, new RegExp(`\nHEAD /media/${token}\n200\n`));
      assert(!shown.out.includes("/audio/"), shown.out);
      const file = join(folder, "page.html");
      const owner = await media("usage", "--client", "app Overcast", "--html", file);
      assertEquals(owner.code, 0, owner.err);
      const mailed = await Deno.readTextFile(file);
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
      const checked = await deno(["run", ...taskFlags(main), main, "--check"], {
        env: {
          ...storageIn(subject.folder),
          DEPRECATED_AT: "2026-11-21",
          PORT: "8000",
          NO_COLOR: "1",
        },
      });
      assertEquals(checked.code, 0, checked.err);
      const lines = checked.out.split("\n").filter((line) => line.startsWith("Warning: "));
      assertEquals(lines, [`Warning: ${messages[0]}`]);
    }),
);

needing("processes")(
  "an owner reads of a deleted route while another is still served",
  () =>
    inFolder(async (folder) => {
      await using subject = await openLocal();
      const { token } = await subject.publish(newMetadata("audio"), new Uint8Array(1000));
      const before = await ServerProcess.start({}, subject.folder);
      const caller = { "User-Agent": "Overcast/3.0" };
      await requestRaw(before.port, "HEAD", `/audio/${token}`, caller);
      await before.stop();

      copyProject(folder, ["video"]);
      const main = join(folder, "main.ts");
      await using _server = await ServerProcess.start({}, subject.folder, { main });
      const page = join(folder, "page.html");
      const args = ["media", "usage", "--client", "app Overcast", "--html", page];
      const owner = await deno(["run", ...taskFlags(main), main, ...args], {
        env: { ...storageIn(subject.folder), NO_COLOR: "1" },
      });
      assertEquals(owner.code, 0, owner.err);
      const mailed = await Deno.readTextFile(page);
      assertMatch(mailed, /Overcast still calls paths that were removed<\/h1>/);
      assertMatch(mailed, /: it answers <code>404<\/code>/);
    }),
);
