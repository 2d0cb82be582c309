import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import {
  fileName,
  parseFileName,
  type ProgressWatcher,
  publishFile,
  type PublishOptions,
} from "../../lib/publishing/publish.ts";
import { InterruptedError } from "../../lib/cli/interruption.ts";
import type { Step } from "../../lib/storage/content/content_store.ts";
import { newToken } from "../../lib/storage/token.ts";
import { isPrintable } from "../../lib/input/printable.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { openBucket } from "../support/bucket_storage.ts";
import { openLocal } from "../support/local_storage.ts";
import type { MediaSubject } from "../support/media_subject.ts";
import {
  inFolder,
  media,
  mediaHere,
  mediaTask,
  operatorEnvironment,
} from "../support/media_cli.ts";
import { fromRoot, SAMPLE_MP3 } from "../support/paths.ts";
import { needing, program, shared, type Test } from "../support/permissions.ts";
import { S3_STORE, S3Store } from "../support/s3_store.ts";
import { wav } from "../support/wav.ts";

const test = needing("processes");
const store = shared(S3_STORE, () => S3Store.start());

type Watched = Parameters<ProgressWatcher>[1];

/** Storage to publish into. */
type Subject = MediaSubject & { readonly folder?: string };

/** The files that are staged in a folder. */
async function staged({ folder }: Subject): Promise<string[]> {
  if (folder === undefined) return [];
  return (await Array.fromAsync(Deno.readDir(`${folder}/files/staged`))).map(({ name }) => name);
}

test("deno task media resolves paths against the user's directory, and prints little itself", () =>
  inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/stand/here`, { recursive: true });
    await Deno.copyFile(SAMPLE_MP3, `${folder}/stand/a.mp3`);
    const standing = `${folder}/stand/here`;
    const { code, stdout, stderr } = await mediaTask(folder, standing, ["publish", "../a.mp3"]);
    assertEquals(code, 0, stderr);
    assertMatch(stdout, /^Published audio /);
    // One line of the task itself; none with --quiet.
    assertMatch(stderr, /^Task media deno run [^\n]{1,125} 'publish' '\.\.\/a\.mp3'\n$/);
    const quiet = await mediaTask(folder, standing, ["publish", "../a.mp3"], ["--quiet"]);
    assertEquals([quiet.code, quiet.stderr], [0, ""]);
    const missing = await mediaTask(folder, standing, ["publish", "a.mp3"], ["--quiet"]);
    assertStringIncludes(missing.stderr, `"${standing}/a.mp3"`);

    // INIT_CWD of another project's task is ignored.
    const run = ["run", "--no-prompt", "--allow-all", fromRoot("main.ts")];
    const { env } = operatorEnvironment(folder);
    const { code: status } = await new Deno.Command(Deno.execPath(), {
      args: [...run, "media", "publish", "../a.mp3"],
      cwd: standing,
      env: { ...env, INIT_CWD: "/" },
      clearEnv: true,
      stdout: "null",
    }).output();
    assertEquals(status, 0);
  }));

needing("processes", program("mkfifo"))(
  "media publish refuses anything but a file, without opening it",
  () =>
    inFolder(async (folder) => {
      const [fifo, socket] = [`${folder}/fifo`, `${folder}/socket`];
      assert((await new Deno.Command("mkfifo", { args: [fifo] }).output()).success);
      using _listener = Deno.listen({ transport: "unix", path: socket });
      for (const path of [fifo, socket, "/dev/zero"]) {
        const { code, stderr } = await mediaHere(folder, ["publish", path]);
        assertEquals([code, stderr], [1, `media: "${path}" is not a file\n`]);
      }
      const { code, stderr } = await media(folder, ["publish", "/dev/stdin"]);
      const reason =
        "Deno opens no devices or files of the kernel, as in /dev, /proc and /sys; name a " +
        "file elsewhere";
      assertEquals([code, stderr], [1, `media: "/dev/stdin" cannot be read (${reason})\n`]);
    }),
);

Deno.test("fileName() cuts a name after 255 bytes, between two characters", () => {
  assertEquals(fileName(`s3://b/${"é".repeat(200)}.mp3`), "é".repeat(127));
  assertEquals(fileName("s3://b/a\\b\n.mp3"), "a_b_.mp3");
});

Deno.test("a name that is stated is changed as one that is derived from a path", () => {
  const names = [
    "שלום\u200f.mp3",
    "a\u202egpj.mp3",
    "a\x1b[31m\n.mp3",
    "a\u2028b",
    "\ud800",
    "ü 🎧.mp3",
  ];
  for (const name of names) assertEquals(parseFileName(name), fileName(`/shows/${name}`), name);
  assertEquals(parseFileName("שלום\u200f.mp3"), "שלום_.mp3");
});

test("media publish removes terminal controls from names, and prints none", () =>
  inFolder(async (folder) => {
    const path = `${folder}/a\u202egpj\x1b[31m\n\\.mp3`;
    const missing = await mediaHere(folder, ["publish", path]);
    const shown = `"${folder}/a\\u202egpj\\u001b[31m\\n\\.mp3"`;
    assertEquals(missing.stderr, `media: There is no file ${shown}\n`);
    await Deno.copyFile(SAMPLE_MP3, path);
    const published = await mediaHere(folder, ["publish", path, "--json"]);
    assertEquals(JSON.parse(published.stdout).name, "a_gpj_[31m__.mp3");
    const below = await mediaHere(folder, ["publish", `${path}/b`]); // the system's message contains it, too
    assertMatch(below.stderr, /^media: "[^\n]*" cannot be read \(Not a directory/);
    assert(isPrintable(below.stderr.trimEnd()));
    const wrong = await mediaHere(folder, ["publish", path, "--kind", "\x1b[31m\u202e"]);
    assertMatch(wrong.stderr, /argument '\\u001b\[31m\\u202e' is invalid/);
  }));

test("media list and show escape terminal controls in names", async () => {
  await using subject = await openLocal();
  const token = newToken();
  const name = "a\u202e\x9b\nb";
  await subject.publish({ ...newMetadata(), token, name }, new Uint8Array([1]));
  const listed = await mediaHere(subject.folder, ["list"]);
  assertMatch(listed.stdout, / {2}a\\u202e\\u009b\\nb\n$/);
  const json = await mediaHere(subject.folder, ["export"]);
  assertMatch(json.stdout, /a\\u202e\\u009b\\nb/);
  assertEquals(JSON.parse(json.stdout).name, name);
  const shown = await mediaHere(subject.folder, ["show", token]);
  assertMatch(shown.stdout, /\nname {10}a\\u202e\\u009b\\nb\n/);
});

/** Where content goes, and the steps in which a file is read on its way there. */
const STORES: [place: string, register: Test, open: () => Promise<Subject>, steps: Step[]][] = [
  ["a folder", needing("environment", "files"), () => openLocal(), ["copying"]],
  ["a bucket", needing(...S3_STORE), () => openBucket(store()), ["hashing", "sending"]],
];

for (const [place, register, open, steps] of STORES) {
  register(
    `publishFile() into ${place} leaves nothing behind when it fails, in a process that continues`,
    () =>
      inFolder(async (folder) => {
        await using subject = await open();
        const { storage } = subject;
        const path = `${folder}/a.wav`;
        const content = wav(1, 1_000_000);
        const publish = (options: PublishOptions) =>
          publishFile(storage, path, { ...options, type: "audio/wav" });
        const broken = () => {
          throw new RangeError("broken");
        };
        const changed = `"${path}" changed while it was read`;
        const rows: [change: (abort: () => void) => void, message: string][] = [
          [() => Deno.truncateSync(path, 1_000), changed],
          [() => Deno.writeFileSync(path, content.with(999_999, 1)), changed],
          [broken, "broken"],
          [(abort) => abort(), "stopped by SIGINT"],
        ];
        /** A bucket has all the bytes by the time that these are seen. */
        const late: typeof rows = [
          [() => Deno.writeFileSync(path, new Uint8Array(1), { append: true }), changed],
          [() => Deno.utimeSync(path, 0, 0), changed],
        ];
        for (const failing of steps) {
          for (const [change, message] of [...rows, ...failing === "sending" ? [] : late]) {
            await Deno.writeFile(path, content);
            const controller = new AbortController();
            let isFirst = true;
            const watch = async function* (chunks: AsyncIterable<Uint8Array>, { step }: Watched) {
              for await (const chunk of chunks) {
                if (step === failing && isFirst) {
                  isFirst = false;
                  change(() => controller.abort(new InterruptedError("SIGINT")));
                }
                yield chunk;
              }
            };
            const { signal } = controller;
            await assertRejects(() => publish({ watch, signal }), Error, message);
            assertEquals([await subject.digests(), await staged(subject)], [[], []]);
          }
        }
        await Deno.writeFile(path, content);
        const token = newToken();
        const attempts = await Promise.allSettled([1, 2, 3].map(() => publish({ token })));
        const refusals = attempts.flatMap((each) =>
          each.status === "rejected" ? [each.reason] : []
        );
        assertEquals(
          refusals.map(String),
          Array(2).fill(`RefusedError: Token "${token}" is taken`),
        );
        assertEquals(await staged(subject), []);
        assertEquals((await Array.fromAsync(storage.catalogue.list())).length, 1);
      }),
  );
}

needing("environment", "files")(
  "publishFile() leaves nothing behind when aborted after all is copied",
  async () => {
    await using subject = await openLocal();
    const controller = new AbortController();
    const { signal } = controller;
    const watch = async function* (chunks: AsyncIterable<Uint8Array>, { step }: Watched) {
      yield* chunks;
      if (step === "copying") controller.abort(new InterruptedError("SIGINT"));
    };
    const publish = () => publishFile(subject.storage, SAMPLE_MP3, { watch, signal });
    await assertRejects(publish, InterruptedError);
    assertEquals([await subject.digests(), await staged(subject)], [[], []]);
  },
);
