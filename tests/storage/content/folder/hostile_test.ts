/**
 * What others may have put into the folder with the content: nothing outside is touched by it. Run
 * with the permissions of `deno task media`, under which Deno resolves links by itself, and with
 * CONTENT a link.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { createHash } from "node:crypto";
import { openIn } from "../../../support/local_storage.ts";
import { inFolder, media } from "../../../support/media_cli.ts";
import { SAMPLE_MP3 } from "../../../support/paths.ts";
import { LINUX, needing, program } from "../../../support/permissions.ts";
import { MAIN } from "../../../support/routes.ts";
import { mustRun } from "../../../support/run.ts";
import { storageIn, taskFlags } from "../../../support/server.ts";

/** The digest of the sample that is published; written out, because modules load without permissions. */
const DIGEST = "bcd2c425712305cb5a42907f052ad401059f989b82db02585d6036244250c8fa";
const SHARD = DIGEST.slice(0, 2);

/** Another digest, and names in `staged` and in the other folder. */
const OTHER = "d1".repeat(32);
const STAGED = "01234567-89ab-4def-8123-456789abcdef";

/**
 * A script that arranges something in the folder, where `$other` is a folder with files of somebody
 * else; and what standard error then says, if publishing is refused.
 */
type Row = [what: string, script: string, refusal?: RegExp];

const link = (name: string, expected: string) =>
  new RegExp(`/${name}" is a symbolic link, expected a ${expected}`);

const ROWS: Row[] = [
  ["a shard is a link, and a name in unsettled/ fits it", "ln -s $other di; : > unsettled/diary"],
  [
    "a shard is a link, and a digest in unsettled/ fits it",
    `ln -s $other d1; : > unsettled/${OTHER}`,
    link("d1", "folder"),
  ],
  ["the shard of the content is a link", `ln -s $other ${SHARD}`, link(SHARD, "folder")],
  ["the shard is a file", `: > ${SHARD}`, new RegExp(`/${SHARD}" is a file, expected a folder`)],
  ["staged/ is a link", "rmdir staged; ln -s $other staged", link("staged", "folder")],
  ["staged/ is a pipe", "rmdir staged; mkfifo staged", /\/staged" is a pipe, .* expected a folder/],
  ["unsettled/ is a link", "rmdir unsettled; ln -s $other unsettled", link("unsettled", "folder")],
  [
    "unsettled/ is a link to nothing",
    "rmdir unsettled; ln -s $other/none unsettled",
    link("unsettled", "folder"),
  ],
  ["the lock is a link", "rm lock; ln -s $other/empty lock", link("lock", "file")],
  ["the lock is a link to nothing", "rm lock; ln -s $other/none lock", link("lock", "file")],
  ["the lock is a pipe", "rm lock; mkfifo lock", /\/lock" is a pipe, .* expected a file/],
  [
    "the lock is another file, too",
    "rm lock; ln $other/empty lock",
    /\/lock" is empty, and has another name/,
  ],
  ["a mark is a link", `ln -s $other/diary unsettled/${DIGEST}`],
  ["a mark is a link to nothing", `ln -s $other/none unsettled/${DIGEST}`],
  ["a mark is another file, too", `ln $other/diary unsettled/${DIGEST}`],
  [
    "marks are neither files nor links",
    `mkfifo unsettled/${OTHER}; mkdir -p unsettled/${"ab".repeat(32)}/full`,
  ],
  [
    "links lead to a device",
    `ln -s /dev/zero unsettled/${DIGEST}; ln -s /dev/zero unsettled/${OTHER};
     ln -s /dev/zero staged/${STAGED}; mkdir ${SHARD}; ln -s /dev/zero ${SHARD}/${DIGEST}`,
  ],
  ["a staged file is a link", `ln -s $other/diary staged/${STAGED}`],
  ["a staged file is another file, too", `ln $other/diary staged/${STAGED}`],
  ["a staged file is a pipe", `mkfifo staged/${STAGED}`],
  ["a staged file is a folder", `mkdir staged/${STAGED}`],
  ["staged/ has files of others", "echo mine > staged/diary"],
  ["the content is a link", `mkdir ${SHARD}; ln -s $other/diary ${SHARD}/${DIGEST}`],
  ["the content is another file, too", `mkdir ${SHARD}; ln $other/diary ${SHARD}/${DIGEST}`],
  ["the content is a folder", `mkdir -p ${SHARD}/${DIGEST}/full`, /cannot write to ".*directory/i],
];

/** Everything in a folder: types, modes, owners and content, by path. */
async function snapshot(folder: string): Promise<string> {
  const script =
    "find . -printf '%P %y %m %u %g %s\\n' | sort; find . -type f -exec sha256sum {} +";
  return await mustRun("sh", ["-c", `${script} | sort`], { cwd: folder });
}

async function arrange(folder: string, script: string): Promise<void> {
  const options = { cwd: `${folder}/real`, env: { other: `${folder}/other` } };
  await mustRun("bash", ["-e", "-c", script], options);
}

needing("files")("the rows have the digest of the sample", () => {
  const content = Deno.readFileSync(SAMPLE_MP3);
  assertEquals(createHash("sha256").update(content).digest("hex"), DIGEST);
});

for (const [what, script, refusal] of ROWS) {
  needing("processes", LINUX, program("mkfifo"))(
    `media publish touches nothing outside the folder when ${what}`,
    () =>
      inFolder(async (folder) => {
        const [real, other] = [`${folder}/real`, `${folder}/other`];
        await Deno.mkdir(real);
        await Deno.symlink(real, `${folder}/files`);
        const { media: storage, close } = await openIn(folder);
        if (!script.includes("lock")) await storage.prepare();
        await close();
        await arrange(folder, "mkdir staged unsettled $other; touch lock $other/empty");
        for (const name of ["diary", OTHER, DIGEST, STAGED]) {
          await Deno.writeTextFile(`${other}/${name}`, "not yours");
        }
        await arrange(folder, script);
        const before = await snapshot(other);
        const { code, stdout, stderr } = await media(folder, ["publish", SAMPLE_MP3]);
        assertEquals(await snapshot(other), before, stderr);
        assertMatch(stderr, refusal ?? /^$/);
        assertEquals([code, stdout !== ""], refusal === undefined ? [0, true] : [1, false]);
        if (script.includes("staged/diary")) {
          assertEquals(await Deno.readTextFile(`${real}/staged/diary`), "mine\n");
        }
        if (refusal !== undefined) return;
        const listed = await media(folder, ["verify", "--content"]);
        assertMatch(listed.stdout, /^1 item verified: 1 as published/, listed.stderr);
      }),
  );
}

needing("processes", program("strace"))(
  "media publish changes no mode or owner by a path",
  () =>
    inFolder(async (folder) => {
      const calls = "trace=/^f?chmod|^l?chown|^fchownat"; // all but SQLite's fchown
      const trace = ["-f", "-qq", "-e", calls, "-o", `${folder}/trace`, Deno.execPath()];
      const words = [...trace, "run", ...taskFlags(MAIN), MAIN, "media", "publish", SAMPLE_MP3];
      await mustRun("strace", words, { env: storageIn(folder) });
      const made = (await Deno.readTextFile(`${folder}/trace`)).trimEnd().split("\n");
      assert(made.length >= 6, "three files and three folders get a mode");
      for (const call of made) assertMatch(call, /^\d+ +(?:fchmod\(\d+, |<\.\.\. fchmod )/);
    }),
);
