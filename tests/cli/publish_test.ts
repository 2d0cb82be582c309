/** `media publish` of many sources. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { createHash } from "node:crypto";
import { publishAll } from "../../lib/publishing/publish_all.ts";
import { newToken } from "../../lib/storage/token.ts";
import type { Step } from "../../lib/storage/content/content_store.ts";
import { openLocal } from "../support/local_storage.ts";
import { type MadeFile, makeFiles, wav } from "../support/media_files.ts";
import {
  inFolder,
  makeCatalogue,
  media,
  mediaCommand,
  mediaTask,
  operatorEnvironment,
  taskArguments,
} from "../support/media_cli.ts";
import { Origin } from "../support/origin.ts";
import { fromRoot, SAMPLE_MP3 } from "../support/paths.ts";
import { LINUX, needing, program } from "../support/permissions.ts";

const test = needing("processes");

const sha256 = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");

/** Parses objects, one per line. */
function parseLines(text: string) {
  return text.trimEnd().split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** Returns the name under which a file is published. */
const cleanName = ({ name }: MadeFile) => name.replaceAll(/[\n\t\u202e\\]/g, "_");

/** Lists every file in a folder, with everything that changes when it is written. */
async function stateOf(folder: string): Promise<unknown[]> {
  const states = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    const { ino, size, mtime, ctime } = await Deno.stat(path);
    states.push([path, ino, size, mtime?.getTime(), ctime?.getTime()]);
    if (isDirectory) states.push(...await stateOf(path));
  }
  return states.toSorted((a, b) => String(a) < String(b) ? -1 : 1);
}

test("media publish publishes 300 media files in folders, refuses 20 others, and skips all of them next time", () =>
  inFolder(async (folder) => {
    const files = makeFiles(`${folder}/media`, 300, 20);
    const [published, refused] = [true, false].map((is) =>
      files.filter(({ isMedia }) => isMedia === is)
    ) as [MadeFile[], MadeFile[]];
    const arrow = [
      "publish",
      "--published-at",
      "2020-02-29T12:00:00.789+01:00",
      "--language",
      "de",
    ];
    const first = await media(folder, [...arrow, `${folder}/media`, "--json"]);
    const outcomes = parseLines(first.stdout);
    assertEquals(first.code, 1);
    assertEquals(first.stderr.split("\n").slice(-2), [
      "Published 300, skipped 0 (already published), refused 20",
      "",
    ]);

    // Every file once, in order, with the outcome that its content implies.
    const paths = files.map(({ path }) => path);
    assertEquals(
      outcomes.map(({ source }) => source),
      outcomes.map(({ source }) => source).toSorted(),
    );
    assertEquals(new Set(outcomes.map(({ source }) => source)), new Set(paths));
    assertEquals(outcomes.length, 320);
    const bySource = new Map(outcomes.map((outcome) => [outcome.source, outcome]));
    for (const file of published) {
      const { outcome, name, sha256: digest, length, publishedAt, language } = bySource.get(
        file.path,
      );
      assertEquals([outcome, publishedAt, language], [
        "published",
        "2020-02-29T11:00:00.789Z",
        "de",
      ]);
      assertEquals([name, digest, length], [
        cleanName(file),
        sha256(file.content),
        file.content.length,
      ]);
    }
    for (const { path } of refused) {
      const { outcome, reason } = bySource.get(path);
      assertEquals(outcome, "refused");
      assertMatch(reason, /^"\/.* has an unknown format; state its media type with --type$/);
      assert(first.stderr.includes(`refused    ${reason}\n`));
    }
    const listed = parseLines((await media(folder, ["export"])).stdout);
    const records = outcomes.filter(({ token }) => token !== undefined)
      .map(({ source: _, outcome: __, urls: ___, ...record }) => record);
    assertEquals(
      listed,
      records.toSorted((a, b) => a.token < b.token ? -1 : 1),
    );

    const before = await stateOf(`${folder}/files`);
    const again = await media(folder, ["publish", `${folder}/media`]);
    assertEquals(again.code, 1);
    assertEquals(again.stderr.split("\n").length - 1, 20);
    const lines = again.stdout.trimEnd().split("\n");
    assertEquals(lines.pop(), "Published 0, skipped 300 (already published), refused 20");
    assertEquals(
      lines.map((line) => line.split(/ +/, 3).join(" ")),
      outcomes.filter(({ token }) => token !== undefined)
        .map(({ token, kind }) => `skipped ${token} ${kind}`),
    );
    assertEquals(await stateOf(`${folder}/files`), before); // no file was written
    assertEquals(parseLines((await media(folder, ["export"])).stdout), listed);
  }));

needing("environment", "files")(
  "publishAll() hashes a published file without copying it",
  async () => {
    await using subject = await openLocal();
    const { storage, folder } = subject;
    const files = makeFiles(`${folder}/media`, 30, 2);
    let steps: Step[] = [];
    let bytes = 0;
    const run = async (again = false) => {
      [steps, bytes] = [[], 0];
      const watch = async function* (chunks: AsyncIterable<Uint8Array>, { step }: { step: Step }) {
        steps.push(step);
        for await (const chunk of chunks) {
          bytes += chunk.length;
          yield chunk;
        }
      };
      const options = { watch, reuse: !again };
      const outcomes = await Array.fromAsync(publishAll(storage, [`${folder}/media`], options));
      return Map.groupBy(outcomes, ({ outcome }) => outcome);
    };
    const count = (step: Step) => steps.filter((other) => other === step).length;
    const size = files.filter(({ isMedia }) => isMedia)
      .reduce((sum, { content }) => sum + content.length, 0);

    assertEquals((await run()).get("published")?.length, 30);
    assertEquals([count("hashing"), count("copying")], [30, 30]);
    assertEquals((await run()).get("skipped")?.length, 30);
    assertEquals([count("hashing"), count("copying"), bytes], [30, 0, size]);

    const [, , third] = files;
    await Deno.writeFile(third?.path as string, wav(9_999));
    const mixed = await run();
    assertEquals([mixed.get("skipped")?.length, mixed.get("published")?.length], [29, 1]);
    assertEquals([count("hashing"), count("copying")], [30, 1]);
    assertEquals((await run(true)).get("published")?.length, 30);
  },
);

test("media publish skips a source with the same content and name, if the stored content is complete", () =>
  inFolder(async (folder) => {
    const [a, b] = [`${folder}/a.mp3`, `${folder}/sub/a.mp3`];
    await Deno.mkdir(`${folder}/sub`);
    await Deno.copyFile(SAMPLE_MP3, a);
    await Deno.copyFile(SAMPLE_MP3, b);
    const publish = async (...args: string[]) => {
      const { code, stdout, stderr } = await media(folder, ["publish", "--json", ...args]);
      assertEquals([code, stderr], [0, ""]);
      const { outcome, token, sha256: digest } = JSON.parse(stdout);
      return { outcome, token, digest };
    };
    const first = await publish(a);
    assertEquals(first.outcome, "published");
    const skipped = { ...first, outcome: "skipped" };
    assertEquals(await publish(a), skipped);
    assertEquals(await publish(b), skipped);
    const { stdout } = await media(folder, ["publish", a]);
    assertMatch(stdout, new RegExp(`^Skipped: already published as audio ${first.token}\n  http`));
    assertEquals((await publish(a, "--name", "b.mp3")).outcome, "published");
    assertEquals((await publish(a, "--again")).outcome, "published");
    const token = newToken();
    assertEquals(await publish(a, "--token", token), { ...first, outcome: "published", token });

    // Publishing again restores the content.
    await Deno.remove(`${folder}/files/${first.digest.slice(0, 2)}/${first.digest}`);
    assertEquals((await publish(a)).outcome, "published");
    const { heads } = JSON.parse((await media(folder, ["show", first.token, "--json"])).stdout);
    assertEquals(heads[0].status, 200);
    assertEquals((await publish(a)).outcome, "skipped");

    await Deno.writeFile(a, wav(1)); // other content
    assertEquals((await publish(a)).outcome, "published");
    for (const { token } of parseLines((await media(folder, ["export"])).stdout)) {
      assertEquals((await media(folder, ["unpublish", token])).code, 0);
    }
    assertEquals((await publish(b)).outcome, "published");
  }));

test("media publish accepts files, folders and URLs in one command, and continues after each refusal", () =>
  inFolder(async (folder) => {
    await using origin = new Origin(({ url }) =>
      url.endsWith("/a.mp3")
        ? new Response(null, { headers: { "Content-Type": "audio/mpeg", "Content-Length": "7" } })
        : new Response(null, { status: 404 })
    );
    const standing = `${folder}/here`;
    await Deno.mkdir(`${standing}/sub/.git`, { recursive: true });
    for (const name of ["-x.mp3", "sub/b.mp3", "sub/.c.mp3"]) {
      await Deno.copyFile(SAMPLE_MP3, `${standing}/${name}`);
    }
    await Deno.symlink("..", `${standing}/sub/up`);
    const [url, gone] = [origin.url("/a.mp3"), origin.url("/gone")];
    const sources = [gone, "sub", "nothing", url, "s3://b/k", "-x.mp3"];
    const { code, stdout, stderr } = await mediaTask(
      folder,
      standing,
      ["publish", "--published-at", "2020-01-01", "--", ...sources],
      ["--quiet"],
    );
    assertEquals(code, 1);
    assertMatch(
      stdout,
      new RegExp(
        [
          `^published  [0-9a-f-]{36}  audio  ${standing}/sub/b\\.mp3`,
          `published  [0-9a-f-]{36}  audio  ${url.replaceAll(/[.?]/g, "\\$&")}`,
          `published  [0-9a-f-]{36}  audio  ${standing}/-x\\.mp3`,
          "Published 3, skipped 0 \\(already published\\), refused 3",
          "Left out: 2 hidden, 1 link\n$",
        ].join("\n"),
      ),
    );
    assertEquals(stderr.split("\n"), [
      `refused    "${gone}" answers GET with 404; expected 200 or 206`,
      `refused    There is no file "${standing}/nothing"`,
      "refused    storage: CONTENT is not a bucket, so objects cannot be published in place",
      "",
    ]);
    const listed = parseLines((await media(folder, ["export"])).stdout);
    assertEquals(
      listed.map(({ publishedAt }) => publishedAt),
      Array(3).fill("2020-01-01T00:00:00.000Z"),
    );

    const nothing = await media(folder, ["publish", `${standing}/sub/.git`]);
    assertEquals([nothing.code, nothing.stdout], [
      0,
      "Published 0, skipped 0 (already published), refused 0\n",
    ]);
    const dashed = await mediaTask(folder, standing, ["publish", "./-x.mp3"], ["--quiet"]);
    assertMatch(dashed.stdout, /^Skipped: already published as audio /);
  }));

/** Makes a folder with a file to publish, one to refuse, a long one, and another after it. */
async function makeFour(folder: string, length: number): Promise<string> {
  await Deno.mkdir(`${folder}/media`);
  await Deno.copyFile(SAMPLE_MP3, `${folder}/media/a.mp3`);
  await Deno.writeTextFile(`${folder}/media/b.txt`, "Dear diary,\n");
  await Deno.writeFile(`${folder}/media/c.wav`, wav(0));
  await Deno.truncate(`${folder}/media/c.wav`, length); // sparse, so it takes no disk space
  await Deno.copyFile(SAMPLE_MP3, `${folder}/media/d.mp3`);
  return `${folder}/media`;
}

test("media publish stops on a signal, even twice, reports what it has published, and leaves nothing staged", () =>
  inFolder(async (folder) => {
    const sources = await makeFour(folder, 2 ** 37);
    await makeCatalogue(folder);
    for (const [signal, status] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
      const options = signal === "SIGINT" ? ["--again"] : []; // copying, or only hashing
      const child = mediaCommand(folder, ["publish", ...options, sources]).spawn();
      const output = new Response(child.stdout).text();
      let errors = "";
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
        try {
          child.kill(signal); // after the second is refused, during the long third; then again
        } catch (error) {
          if (!(error instanceof TypeError)) throw error; // it has already ended
        }
        errors += text;
      }
      assertEquals((await child.status).code, status);
      assertMatch(await output, /^\w+ +[0-9a-f-]{36} {2}audio {2}\/.*\/a\.mp3\n$/);
      const [published, skipped] = signal === "SIGINT" ? [1, 0] : [0, 1];
      assertEquals(errors.split("\n").slice(1), [
        `Published ${published}, skipped ${skipped} (already published), refused 1`,
        `media: stopped by ${signal}`,
        "",
      ]);
      assertEquals(await Array.fromAsync(Deno.readDir(`${folder}/files/staged`)), []);
    }
    assertEquals(parseLines((await media(folder, ["export"])).stdout).length, 1);
  }));

needing("processes", LINUX, program("sh"))(
  "media publish ends at once when storage fails or the pipe is closed, and reports what was done",
  () =>
    inFolder(async (folder) => {
      const sources = await makeFour(folder, 3e6);
      await makeCatalogue(folder);
      // No file may be longer than a megabyte; `ulimit` counts in blocks of 512 bytes.
      const limited = await new Deno.Command("sh", {
        args: [
          ...["-c", `trap "" XFSZ; ulimit -f 2000; exec "$0" "$@"`, Deno.execPath()],
          ...[
            "run",
            "--no-prompt",
            "--allow-all",
            fromRoot("main.ts"),
            "media",
            "publish",
            sources,
          ],
        ],
        ...operatorEnvironment(folder),
      }).output();
      const errors = new TextDecoder().decode(limited.stderr);
      assertEquals(limited.code, 1);
      assertMatch(new TextDecoder().decode(limited.stdout), /^published {2}[^\n]*\/a\.mp3\n$/);
      const [, summary, message, ...rest] = errors.split("\n");
      assertEquals(summary, "Published 1, skipped 0 (already published), refused 1");
      assertMatch(
        message ?? "",
        /^media: files: cannot write to "\/.*\/files" \(CONTENT\) \(File too/,
      );
      assertEquals(rest, [""]);
      assertEquals(await Array.fromAsync(Deno.readDir(`${folder}/files/staged`)), []);

      const unread = mediaCommand(folder, ["publish", "--again", sources]).spawn();
      const messages = new Response(unread.stderr).text();
      await unread.stdout.cancel();
      assertEquals((await unread.status).code, 1);
      assertMatch(
        await messages,
        /^Published 1, [^\n]*\nmedia: The output cannot be written \(Broken pipe[^\n]*\)\n$/,
      );
      assertEquals(parseLines((await media(folder, ["export"])).stdout).length, 2);
    }),
);

needing("processes", LINUX, program("script"))(
  "media publish shows the progress of each file on a terminal, above which lines are printed",
  () =>
    inFolder(async (folder) => {
      await Deno.mkdir(`${folder}/media`);
      await Deno.writeFile(`${folder}/media/b.wav`, wav(0));
      await Deno.truncate(`${folder}/media/b.wav`, 8e8); // more than a second of work
      for (const name of ["a", "c", "d"]) {
        await Deno.copyFile(SAMPLE_MP3, `${folder}/media/${name}`);
      }
      await media(folder, ["publish", `${folder}/media/a`]);
      const args = ["publish", "--language", "en", `${folder}/media`];
      const command = [Deno.execPath(), ...taskArguments(args, ["--quiet"])];
      const { code, stdout } = await new Deno.Command("script", {
        args: ["--quiet", "--return", "--flush", "--command", command.join(" "), "/dev/null"],
        ...operatorEnvironment(folder),
        stdin: "null",
      }).output();
      const shown = new TextDecoder().decode(stdout);
      assertEquals(code, 0, shown);
      assertMatch(shown, /\[\?7l\d\d?% \| \w+ing b\.wav\W/);
      // Clearing the progress leaves nothing of it above, below or in the lines.
      assertEquals(
        onScreen(shown).map((line) => line.replace(/ +[0-9a-f-]{36}.*\//, " ")),
        [
          ...["skipped a", "published b.wav", "published c", "published d"],
          ...["Published 3, skipped 1 (already published), refused 0", ""],
        ],
      );
    }),
);

/** Returns the lines left on a terminal, interpreting the few controls that the progress uses. */
function onScreen(shown: string): string[] {
  const lines = [""];
  let column = 0;
  for (const [token] of shown.replaceAll("\x1b", "␛").matchAll(/␛\[[?\d]*[a-z]|[^]/gi)) {
    const line = lines.at(-1) ?? "";
    if (token === "\r") column = 0;
    else if (token === "\n") lines.push("");
    else if (token === "␛[K") lines[lines.length - 1] = line.slice(0, column);
    else if (/^␛\[\?7[hl]$/.test(token)) continue;
    else if (token.startsWith("␛")) throw new Error(`Unexpected ${JSON.stringify(token)}`);
    else {lines[lines.length - 1] = line.padEnd(column).slice(0, column) + token +
        line.slice(++column);}
  }
  return lines;
}
