/** The demo, as a newcomer runs it, and the pictures that are made of the same year. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { copy, copyProject } from "../support/copy.ts";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { LINUX, needing } from "../support/permissions.ts";
import { within } from "../support/within.ts";

/** Every file in a folder. */
function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    return isDirectory ? filesIn(path) : [path];
  }).toSorted();
}

needing("processes", LINUX)(
  "the demo prints a verdict, serves the pages of its year until Ctrl-C, and leaves nothing behind",
  () =>
    inFolder(async (folder) => {
      copyProject(folder);
      copy(fromRoot("tests"), `${folder}/tests`);
      const before = filesIn(folder);
      const process = new Deno.Command("setsid", { // for a group, which Ctrl-C reaches as a whole
        args: [Deno.execPath(), "task", "--quiet", "demo"],
        cwd: folder,
        env: { TMPDIR: folder, NO_COLOR: "1" },
        stdout: "piped",
      }).spawn();
      let text = "";
      const served = Promise.withResolvers<void>();
      const printed = (async () => {
        for await (const part of process.stdout.pipeThrough(new TextDecoderStream())) {
          text += part;
          if (/curl -I .*\n/.test(text)) served.resolve();
        }
        served.reject(new Error(`It ended after:\n${text}`));
      })();
      await within("the pages", served.promise, { process });
      assertMatch(text, /^This is a year that never was: [^]*\n\n\$ deno task media usage\n/);
      assertMatch(text, /^\/audio\/:token: called, 1,061 calls/m);
      assertMatch(text, /^\/video\/:token: clear, but announced until 2028-03-01T00:00:00Z$/m);
      assertMatch(text, /^exit status 1$/m);

      const urls = [...text.matchAll(/http:\S+/g)].map(([url]) => url);
      const shown = [
        "Still called.</strong> 1,061 calls",
        "MyPod still calls",
        "are going away",
        "",
      ];
      assertEquals(urls.length, shown.length);
      for (const [index, url] of urls.entries()) {
        const response = await fetch(url);
        assertEquals(response.status, 200, url);
        assertStringIncludes(await response.text(), shown[index] as string, url);
      }

      await new Deno.Command("kill", { args: ["-INT", "--", `-${process.pid}`] }).output();
      await within("the end of the demo", Promise.all([process.status, printed]), { process });
      assertEquals(filesIn(folder), before);
    }),
);

needing("files")("README shows the picture, which has at most 100 kB", async () => {
  const page = await Deno.readTextFile(fromRoot("README.md"));
  const shown = [...page.matchAll(/!\[[^\]]+\]\((.+?)\)/g)].map(([, path = ""]) => path);
  assertEquals(shown.toSorted(), [".github/report.png"]);
  for (const path of shown) {
    const bytes = await Deno.readFile(fromRoot(path));
    assertEquals(new TextDecoder().decode(bytes.subarray(1, 4)), "PNG", path);
    assert(bytes.length <= 100_000, `${path} has ${bytes.length} bytes`);
  }
});
