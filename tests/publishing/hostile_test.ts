/** Content that is made to take its reader's time or memory. */

import { assert, assertEquals, assertRejects } from "@std/assert";
import { RefusedError } from "../../lib/errors/refused_error.ts";
import { memoryBytes, WindowedBlob } from "../../lib/publishing/bytes.ts";
import { detectMediaType } from "../../lib/publishing/media_type.ts";
import { inFolder, mediaCommand } from "../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing } from "../support/permissions.ts";
import { runProgram } from "../support/run.ts";
import { storageIn, taskFlags } from "../support/server.ts";
import { within } from "../support/within.ts";
import { HOSTILE } from "./hostile.ts";

const test = needing("environment");

/** Those that are what they seem at their beginning. */
const SOUND = ["pages.ogg"];

const NAMES = Object.keys(HOSTILE);
/** Content by name, made once. */
const contents = new Map(NAMES.map((name) => [name, new Uint8Array(HOSTILE[name]?.() ?? [])]));
const contentOf = (name: string) => contents.get(name) as Uint8Array<ArrayBuffer>;

for (const name of NAMES) {
  test(`detectMediaType() reads little of ${name}`, async () => {
    const content = memoryBytes(contentOf(name));
    let [reads, bytes] = [0, 0];
    const read = (offset: number, length: number) => {
      reads++;
      bytes += length;
      return content.read(offset, length);
    };
    const detecting = detectMediaType("it", { ...content, read }, {});
    if (SOUND.includes(name)) await detecting;
    else await assertRejects(() => detecting, RefusedError);
    assert(reads <= 130 && bytes <= 9e6, `${reads} reads of ${bytes} bytes`);

    const beginning = memoryBytes(contentOf(name).subarray(0, 65_536), false); // as of a URL
    const detectingIt = detectMediaType("it", beginning, {});
    if (SOUND.includes(name) || name === "tags-apart.mp3") await detectingIt;
    else await assertRejects(() => detectingIt, RefusedError);
  });
}

test("WindowedBlob reads little that is far apart, and little in small parts", async () => {
  const content = {
    size: 2 ** 50,
    isWhole: true,
    read: (_: number, length: number) => Promise.resolve(new Uint8Array(length)),
  };
  for (
    const [distance, length, most] of [[1, 1, 10_000], [2 ** 40, 1, 64], [1, 2 ** 30, 0]] as const
  ) {
    const blob = new WindowedBlob(content);
    let reads = 0;
    const readAll = async () => {
      for (; reads < 20_000; reads++) await blob.read(reads % 1_000 * distance, length);
    };
    await assertRejects(readAll, RangeError);
    assertEquals(reads, most);
  }
});

/** Fills a folder with what is hostile, and a good file after each of it. */
async function fill(folder: string): Promise<void> {
  await Deno.mkdir(folder);
  for (const [index, name] of NAMES.entries()) {
    const number = String(index).padStart(2, "0");
    await Deno.writeFile(`${folder}/${number}-${name}`, contentOf(name));
    const good = index % 2 ? SAMPLE_MP3 : SAMPLE_MP4;
    await Deno.copyFile(good, `${folder}/${number}-${name}-good`);
  }
}

needing("processes")(
  "media publish publishes every good file between hostile ones, in a heap of 64 MB, and hears a signal",
  () =>
    inFolder(async (folder) => {
      await fill(`${folder}/media`);
      const main = fromRoot("main.ts");
      const flags = [...taskFlags(main), "--v8-flags=--max-old-space-size=64"];
      const words = ["run", ...flags, main, "media", "publish", "--json", `${folder}/media`];
      const { code, stdout, stderr } = await runProgram(Deno.execPath(), words, {
        env: storageIn(folder),
      });
      const outcomes = stdout.trimEnd().split("\n")
        .map((line) => JSON.parse(line) as { outcome: string; source: string; reason?: string });
      assertEquals(
        outcomes.map(({ source, outcome }) => [source.replace(/^.*\/\d+-/, ""), outcome]),
        NAMES.flatMap((name) => [
          [name, SOUND.includes(name) ? "published" : "refused"],
          [`${name}-good`, "published"],
        ]),
      );
      for (const { outcome, reason = "", source } of outcomes) {
        if (outcome === "refused") assert(reason.startsWith(`"${source}" `), reason);
      }
      const published = NAMES.length + SOUND.length;
      const refused = NAMES.length - SOUND.length;
      const summary = `Published ${published}, skipped 0 (already published), refused ${refused}\n`;
      assert(stderr.endsWith(summary), stderr);
      assertEquals(code, 1);

      const stopped = mediaCommand(folder, ["publish", "--again", `${folder}/media`]).spawn();
      const errors = (async () => {
        for await (const _ of stopped.stderr) {
          try {
            stopped.kill("SIGINT"); // the first is refused at once
          } catch (error) {
            if (!(error instanceof TypeError)) throw error; // it has already ended
          }
        }
      })();
      const ended = within("the end after a signal", stopped.status, { process: stopped });
      const [status] = await Promise.all([ended, new Response(stopped.stdout).text(), errors]);
      assertEquals(status.code, 130);
    }),
);
