/** `media publish` of many sources. */

import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { newToken } from "../../lib/storage/token.ts";
import {
  inFolder,
  makeCatalogue,
  mediaCommand,
  mediaHere,
  mediaInShell,
  mediaTask,
  onTerminal,
  operatorEnvironment,
  taskArguments,
} from "../support/media_cli.ts";
import { Origin } from "../support/origin.ts";
import { SAMPLE_MP3 } from "../support/paths.ts";
import { LINUX, needing, program } from "../support/permissions.ts";
import { refusal, response, ScriptedStore } from "../support/scripted_store.ts";
import { wav } from "../support/wav.ts";

const test = needing("processes");

/** Parses objects, one per line. */
function parseLines(text: string) {
  return text.trimEnd().split("\n").filter(Boolean).map((line) => JSON.parse(line));
}

/** Names that break code which splits or quotes, or control terminals. */
const AWKWARD = [
  ...["a b", "it's", '"quoted"', "new\nline", "ünï 🎧", "-dash", "--kind", "$(x) `y` *", "a\\b"],
  ...["tab\t", "%41", "\u202egpj", " lead and trail "],
];

/** Makes files in subfolders, all with awkward names; every fourth is no media file. */
function makeFiles(folder: string) {
  const mp3 = Deno.readFileSync(SAMPLE_MP3);
  return [...AWKWARD, ...AWKWARD].map((awkward, number) => {
    const name = `${awkward}${number}`;
    const path = `${folder}/${AWKWARD[number % 7]}/${name}`;
    const isMedia = number % 4 > 0;
    const text = new TextEncoder().encode(`Dear diary no. ${number}\n`);
    const content = isMedia ? number % 4 > 1 ? wav(number, 2_000) : [...mp3, number] : text;
    Deno.mkdirSync(dirname(path), { recursive: true });
    Deno.writeFileSync(path, new Uint8Array(content));
    return { path, name: name.replaceAll(/[\n\t\u202e\\]/g, "_"), content, isMedia };
  });
}

/** Lists every file in a folder, with what changes when it is written. */
async function stateOf(folder: string): Promise<unknown[]> {
  const states = await Array.fromAsync(Deno.readDir(folder), async ({ name, isDirectory }) => {
    const { ino, ctime } = await Deno.stat(`${folder}/${name}`);
    return [name, ino, ctime?.getTime(), isDirectory && await stateOf(`${folder}/${name}`)];
  });
  return states.toSorted();
}

test("media publish publishes media files in folders, refuses others, and skips all of them next time", () =>
  inFolder(async (folder) => {
    const files = makeFiles(`${folder}/media`);
    const options = ["--published-at", "2020-02-29T12:00:00.789+01:00", "--language", "de"];
    const first = await mediaHere(folder, ["publish", ...options, `${folder}/media`, "--json"]);
    assertEquals(first.code, 1);
    const summary = "Published 19, skipped 0 (already published), refused 7\n";
    assert(first.stderr.endsWith(summary), first.stderr);

    // Every file once, in order, with the outcome that its content implies.
    const outcomes = parseLines(first.stdout);
    const paths = files.map(({ path }) => path);
    assertEquals(outcomes.map(({ source }) => source), paths.toSorted());
    const bySource = new Map(outcomes.map((outcome) => [outcome.source, outcome]));
    for (const { path, name, content, isMedia } of files) {
      const { outcome, reason, source: _, urls: __, ...members } = bySource.get(path);
      assertEquals(outcome, isMedia ? "published" : "refused");
      if (isMedia) {
        assertEquals({ ...members, token: null, type: null }, {
          ...{ state: "published", token: null, kind: "audio", type: null, name, language: "de" },
          ...{ sha256: createHash("sha256").update(new Uint8Array(content)).digest("hex") },
          ...{ length: content.length, publishedAt: "2020-02-29T11:00:00.789Z" },
        });
      } else {
        assertMatch(reason, /^"\/.* --type$/);
        assert(first.stderr.includes(`refused    ${reason}\n`));
      }
    }

    const before = await stateOf(`${folder}/files`);
    const again = await mediaHere(folder, ["publish", `${folder}/media`]);
    assertEquals([again.code, again.stderr.split("\n").length - 1], [1, 7]);
    const lines = again.stdout.trimEnd().split("\n");
    assertEquals(lines.pop(), "Published 0, skipped 19 (already published), refused 7");
    assertEquals(
      lines.map((line) => line.split(/ +/, 3).join(" ")),
      outcomes.flatMap(({ token, kind }) => token ? `skipped ${token} ${kind}` : []),
    );
    assertEquals(await stateOf(`${folder}/files`), before, "no file was written");
  }));

test("media publish skips a source with the same content and name, and restores its content", () =>
  inFolder(async (folder) => {
    const [a, b] = [`${folder}/a.mp3`, `${folder}/sub/a.mp3`];
    await Deno.mkdir(`${folder}/sub`);
    await Deno.copyFile(SAMPLE_MP3, a);
    await Deno.copyFile(SAMPLE_MP3, b);
    const publish = async (...args: string[]) => {
      const { code, stdout, stderr } = await mediaHere(folder, ["publish", "--json", ...args]);
      assertEquals([code, stderr], [0, ""]);
      const { outcome, token, sha256: digest } = JSON.parse(stdout);
      return { outcome, token, digest };
    };
    const first = await publish(a);
    assertEquals(first.outcome, "published");
    const skipped = { ...first, outcome: "skipped" };
    assertEquals(await publish(a), skipped);
    assertEquals(await publish(b), skipped);
    const { stdout } = await mediaHere(folder, ["publish", a]);
    assertMatch(
      stdout,
      new RegExp(`^Skipped: already published as audio ${first.token}\n  /media/`),
    );
    assertEquals((await publish(a, "--name", "b.mp3")).outcome, "published");
    assertEquals((await publish(a, "--again")).outcome, "published");
    const token = newToken();
    assertEquals(await publish(a, "--token", token), { ...first, outcome: "published", token });

    await Deno.remove(`${folder}/files/${first.digest.slice(0, 2)}/${first.digest}`);
    assertEquals((await publish(a)).outcome, "skipped"); // one of three such items is named
    const { heads } = JSON.parse((await mediaHere(folder, ["show", first.token, "--json"])).stdout);
    assertEquals(heads[0].status, 200);

    await Deno.writeFile(a, wav(1, 2_000)); // other content
    assertEquals((await publish(a)).outcome, "published");
    for (const { token } of parseLines((await mediaHere(folder, ["export"])).stdout)) {
      assertEquals((await mediaHere(folder, ["unpublish", token])).code, 0);
    }
    assertEquals((await publish(b)).outcome, "published");
  }));

test("media publish accepts files, folders and URLs in one command, and continues after each refusal", () =>
  inFolder(async (folder) => {
    await using origin = new Origin(({ url }) =>
      url.endsWith("/a.mp3")
        ? new Response("content", { headers: { "Content-Type": "audio/mpeg" } })
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
          "Published 3, skipped 0 \\(already published\\), refused 3, left out 3 \\(hidden.*\n$",
        ].join("\n"),
      ),
    );
    const [linked = "", missing = "", object = "", ...others] = stderr.split("\n");
    assertStringIncludes(linked, `refused    "${gone}" `);
    assertMatch(missing, new RegExp(`^refused    .*"${standing}/nothing"$`));
    assertEquals(
      [object, ...others],
      ["refused    CONTENT is not a bucket, so objects cannot be published in place", ""],
    );
    const listed = parseLines((await mediaHere(folder, ["export"])).stdout);
    assertEquals(
      listed.map(({ publishedAt }) => publishedAt),
      Array(3).fill("2020-01-01T00:00:00.000Z"),
    );

    const nothing = await mediaHere(folder, ["publish", `${standing}/sub/.git`]);
    assertEquals([nothing.code, nothing.stdout], [
      0,
      "Published 0, skipped 0 (already published), refused 0\n",
    ]);
  }));

test("media publish goes on after objects that cannot be read, and ends if the store is at fault", () =>
  inFolder(async (folder) => {
    await using store = new ScriptedStore();
    const { endpoint = "", region, accessKeyId, secretAccessKey } = store.settings;
    const environment = {
      ...{ CONTENT: "s3://media/p", AWS_ENDPOINT_URL_S3: endpoint, AWS_REGION: region },
      ...{ AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
    };
    let isDown = false;
    store.script = (head) => {
      const [, method, name] = /^(\w+) \/media\/(\S*)/.exec(head) ?? [];
      if (name === "p/media-head") {
        return isDown ? refusal(403, "AccessDenied") : response(200, {}, ID);
      }
      if (name === "a.mp3" && method === "GET") return refusal(403, "InvalidObjectState");
      if (name === "b.mp3" || isDown) return refusal(400, "Broken");
      return response(200, { ETag: '"x"' }, "content");
    };
    const ID = crypto.randomUUID();
    const objects = ["a", "b", "c"].map((name) => `s3://media/${name}.mp3`);
    const args = ["publish", "--type", "audio/mpeg", ...objects];
    const some = await mediaHere(folder, args, environment);
    assertEquals(some.code, 1);
    assertMatch(
      some.stdout,
      /^published {2}\S+ {2}audio {2}s3:\/\/media\/c\.mp3\nPublished 1, .*, refused 2\n$/,
    );
    assertEquals(some.stderr.split("\n"), [
      'refused    "s3://media/a.mp3" cannot be read: the store answers 403 (InvalidObjectState)',
      'refused    bucket: "s3://media/b.mp3" cannot be read: the store answers 400 (Broken)',
      "",
    ]);
    isDown = true;
    const none = await mediaHere(folder, args, environment);
    assertEquals([none.code, none.stdout], [1, ""]);
    assertMatch(
      none.stderr,
      /^Published 0, .*\nmedia: bucket: .* cannot be read: .* 403 \(Acc.*\n$/,
    );
  }));

test("media publish says of a URL that it cannot publish which ones it can", () =>
  inFolder(async (folder) => {
    const rows: [source: string, shown: string][] = [
      ["ftp://h/a.mp3", "ftp://h/a.mp3"],
      ["ftp://me:secret@h/a.mp3", "ftp://…@h/a.mp3"],
      ["file:///tmp/a.mp3", "file:///tmp/a.mp3"],
      ["S3://media/a.mp3", "S3://media/a.mp3"],
    ];
    for (const [source, shown] of rows) {
      const refusal = `"${shown}" cannot be published; expected http://…, https://… or ` +
        "s3://BUCKET/KEY\n";
      const one = await mediaHere(folder, ["publish", source]);
      assertEquals(one, { code: 1, stdout: "", stderr: `media: ${refusal}` });
      const two = await mediaHere(folder, ["publish", source, SAMPLE_MP3, "--json"]);
      assertEquals([two.code, two.stderr], [
        1,
        `refused    ${refusal}Published 1, skipped 0` +
        " (already published), refused 1\n",
      ]);
      assertEquals(parseLines(two.stdout)[0].source, shown);
      await Deno.remove(`${folder}/catalogue.sqlite`);
      await Deno.remove(`${folder}/files`, { recursive: true });
    }
  }));

needing("processes", LINUX)(
  "media refuses a name that is not UTF-8 as that",
  () =>
    inFolder(async (folder) => {
      // Deno cannot make such names.
      const make =
        "mkdir m m/d$(printf '\\377') && touch m/caf$(printf '\\351').mp3 && cp \"$0\" m/z.mp3";
      const args = ["-c", make, SAMPLE_MP3];
      assert((await new Deno.Command("sh", { args, cwd: folder }).output()).success);
      const { code, stdout, stderr } = await mediaHere(folder, ["publish", `${folder}/m`]);
      assertEquals([code, stdout.split("\n").length], [1, 3]);
      const refusal = (name: string) => `The name of "${folder}/m/${name}" is not UTF-8; rename it`;
      assertEquals(stderr.split("\n"), [
        `refused    ${refusal("caf\ufffd.mp3")}`,
        `refused    ${refusal("d\ufffd")}`,
        "",
      ]);
      const inShell = `exec "$0" "$@" m/caf*.mp3`;
      const named = await new Deno.Command("sh", {
        args: ["-c", inShell, Deno.execPath(), ...taskArguments(["publish"], ["--quiet"])],
        cwd: folder,
        ...operatorEnvironment(folder),
      }).output();
      const error = new TextDecoder().decode(named.stderr);
      assertEquals([named.code, error], [1, `media: ${refusal("caf\ufffd.mp3")}\n`]);
    }),
);

/** Makes a folder with a file to publish, one to refuse, a long one, and another after it. */
async function makeFour(folder: string, length: number): Promise<string> {
  await Deno.mkdir(`${folder}/media`);
  await Deno.copyFile(SAMPLE_MP3, `${folder}/media/a.mp3`);
  await Deno.writeTextFile(`${folder}/media/b.txt`, "Dear diary,\n");
  await Deno.writeFile(`${folder}/media/c.wav`, wav(0, 2_000));
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
    assertEquals(parseLines((await mediaHere(folder, ["export"])).stdout).length, 1);
  }));

needing("processes", LINUX, program("sh"))(
  "media says that the disk is full where SQLite calls it an I/O error",
  () =>
    inFolder(async (folder) => {
      await makeCatalogue(folder);
      // SQLite cannot make the index of its log, which has 32 kB. `ulimit` counts 512 bytes.
      const script = `trap "" XFSZ; ulimit -f 40; exec "$0" "$@"`;
      const { code, stderr } = await mediaInShell(folder, script, ["list"]);
      assertEquals(code, 1);
      assertMatch(
        stderr,
        /^media: sqlite: .* \(DATABASE_URL\) cannot be opened \(The disk is full\)\n$/,
      );
    }),
);

needing("processes", LINUX, program("sh"))(
  "media publish ends at once when storage fails or the pipe is closed, and reports what was done",
  () =>
    inFolder(async (folder) => {
      const sources = await makeFour(folder, 3e6);
      await makeCatalogue(folder);
      // No file may be longer than a megabyte; `ulimit` counts in blocks of 512 bytes.
      const script = `trap "" XFSZ; ulimit -f 2000; exec "$0" "$@"`;
      const limited = await mediaInShell(folder, script, ["publish", sources]);
      assertEquals(limited.code, 1);
      assertMatch(limited.stdout, /^published {2}[^\n]*\/a\.mp3\n$/);
      const [, summary, message, ...rest] = limited.stderr.split("\n");
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
        /^Published 1, [^\n]*\nmedia: [^\n]* \(write EPIPE\)\n$/,
      );
      assertEquals(parseLines((await mediaHere(folder, ["export"])).stdout).length, 2);
    }),
);

needing("processes", LINUX, program("script"))(
  "media publish shows the progress of each file on a terminal, and prints lines above it",
  () =>
    inFolder(async (folder) => {
      await Deno.mkdir(`${folder}/media`);
      await Deno.writeFile(`${folder}/media/b.wav`, wav(0, 2_000));
      await Deno.truncate(`${folder}/media/b.wav`, 8e8); // more than a second of work
      for (const name of ["a", "c", "d"]) {
        await Deno.copyFile(SAMPLE_MP3, `${folder}/media/${name}`);
      }
      await mediaHere(folder, ["publish", `${folder}/media/a`]);
      const args = ["publish", "--language", "en", `${folder}/media`];
      const { code, stdout } = await onTerminal(folder, args).output();
      const shown = new TextDecoder().decode(stdout).replaceAll("\x1b", "␛");
      assertEquals(code, 0, shown);
      assertMatch(shown, /\[\?7l\d\d?% \| \w+ing b\.wav\W/);
      // Each line is printed after the progress before it was cleared.
      const progress = /(\r␛\[K␛\[\?7l[^␛]*␛\[\?7h)+\r␛\[K/g;
      assertEquals(
        shown.replaceAll(progress, "").split("\r\n").map((line) =>
          line.replace(/ +[0-9a-f-]{36}.*\//, " ")
        ),
        [
          ...["skipped a", "published b.wav", "published c", "published d"],
          ...["Published 3, skipped 1 (already published), refused 0", ""],
        ],
      );
    }),
);
