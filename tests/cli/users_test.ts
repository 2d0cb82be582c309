/** Several users who publish into one folder: real ones, with the permissions of the media task. */

import { assertEquals, assertMatch } from "@std/assert";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { type CommandResult, inFolder } from "../support/media_cli.ts";
import { Installation, type User, USERS } from "../support/users.ts";

const installation = shared(USERS, () => Installation.make());

interface Place {
  readonly folder: string;
  readonly media: (user: User, ...args: string[]) => Promise<CommandResult>;
  readonly script: (user: User, script: string) => Promise<void>;
}

/** Runs a test in a folder in which all may write. `CONTENT` is a link there, to `real`. */
function test(name: string, body: (place: Place) => Promise<void>): void {
  needing(...USERS)(name, () =>
    inFolder(async (folder) => {
      await Deno.chmod(folder, 0o777);
      await Deno.copyFile(SAMPLE_MP3, `${folder}/a.mp3`);
      await Deno.copyFile(SAMPLE_MP4, `${folder}/b.mp4`);
      const script: Place["script"] = (user, text) => installation().script(user, folder, text);
      await script("nobody", "mkdir real; ln -s real files");
      await body({
        folder,
        script,
        media: (user, ...args) => installation().media(user, folder, args),
      });
    }));
}

/** Lists all files and links below a folder. */
async function filesIn(folder: string): Promise<string[]> {
  const paths: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    paths.push(...isDirectory ? await filesIn(path) : [path]);
  }
  return paths.sort();
}

/** Publishes a.mp3, and lets all users write to the catalogue from then on. */
async function publish({ folder, media, script }: Place, user: User) {
  const { code, stdout, stderr } = await media(user, "publish", "a.mp3", "--json");
  assertEquals(code, 0, stderr);
  await script("root", "chmod a+w catalogue.sqlite*");
  const { token, sha256 } = JSON.parse(stdout) as { token: string; sha256: string };
  const path = (name: string) => `${folder}/files/${name}/${sha256}`;
  return { token, content: path(sha256.slice(0, 2)), mark: path("unsettled") };
}

test("root is told to change another user's folder as that user, and changes nothing", async (place) => {
  const { folder, media } = place;
  const refused = async (...args: string[]) => {
    const before = await filesIn(folder);
    const { code, stdout, stderr } = await media("root", ...args);
    const line = `  sudo -u '#65534' --preserve-env deno task media ${args.join(" ")}`;
    assertEquals([code, stdout, stderr.split("\n").slice(1)], [1, "", [line, ""]]);
    assertMatch(
      stderr,
      /^media: files: "\/.*\/files" \(CONTENT\) belongs to .* 65534, so root must not/,
    );
    assertEquals(await filesIn(folder), before);
  };
  await refused("publish", "a.mp3"); // and creates no catalogue
  const { token } = await publish(place, "nobody");
  await Deno.writeTextFile(`${folder}/list`, '{"path":"b.mp4"}\n');
  await refused("import", "list");
  await refused("publish", "b.mp4");
  await refused("unpublish", token);
  const url = await media("root", "publish", "http://127.0.0.1:1/a.mp3"); // changes no folder
  assertMatch(url.stderr, /^media: "http:\/\/127\.0\.0\.1:1\/a\.mp3" cannot be reached/);
  for (const args of [["list"], ["verify"], ["import", "--dry-run", "list"]]) {
    const { code, stderr } = await media("root", ...args);
    assertEquals(code, 0, stderr);
  }
  assertEquals((await media("nobody", "unpublish", token)).code, 0);
});

/** What a neighbour may do in a folder in which both may write, to reach what is the publisher's. */
const ATTACKS: [script: string, refusal?: RegExp][] = [
  ["ln -s ../other di; : > unsettled/diary"],
  ["mv staged old; ln -s ../other staged", /"\/.*\/staged" is a symbolic link, expected a folder/],
  [
    "mv unsettled old; ln -s ../other unsettled",
    /"\/.*\/unsettled" is a symbolic link, expected a folder/,
  ],
  ["mv lock old; ln -s ../other/empty lock", /"\/.*\/lock" is a symbolic link, expected a file/],
];

for (const [script, refusal] of ATTACKS) {
  test(`publishing touches nothing outside after another user's ${script}`, async (place) => {
    const { folder, media } = place;
    await place.script("nobody", "chmod 777 real; mkdir other; touch other/{diary,empty}");
    await publish(place, "nobody");
    await place.script("daemon", `cd real; ${script}`);
    const before = await filesIn(`${folder}/other`);
    const { code, stderr } = await media("nobody", "publish", "b.mp4");
    assertEquals(await filesIn(`${folder}/other`), before);
    assertEquals(await Deno.readTextFile(`${folder}/other/empty`), "");
    assertEquals(code, refusal === undefined ? 0 : 1);
    assertMatch(stderr, refusal ?? /^$/);
  });
}

/** What keeps the content or its mark from being deleted, and from then on does not. */
interface Hindrance {
  readonly what: string;
  /** Scripts of root in the folder, with the content's path in `$content` and its mark's in `$mark`. */
  readonly before: string;
  readonly after: string;
  readonly unpublisher: User;
  /** Who then can delete what is left. */
  readonly finisher: User;
  readonly left: "content" | "mark";
  readonly commands: readonly ("unpublish" | "import")[];
}

const HINDRANCES: Hindrance[] = [
  {
    what: "a read-only shard",
    before: 'chmod a-w "$(dirname "$content")"',
    after: 'chmod u+w "$(dirname "$content")"',
    unpublisher: "nobody",
    finisher: "nobody",
    left: "content",
    commands: ["unpublish", "import"],
  },
  {
    what: "a sticky folder with content of another user",
    before: "chmod 1777 files files/*/",
    after: "",
    unpublisher: "daemon",
    finisher: "nobody",
    left: "content",
    commands: ["unpublish"],
  },
  {
    what: "a sticky folder with a mark of another user",
    before:
      'chown root files/unsettled; chmod 1777 files/unsettled; : > "$mark"; chown daemon "$mark"',
    after: "",
    unpublisher: "nobody",
    finisher: "daemon",
    left: "mark",
    commands: ["unpublish"],
  },
];

for (const { what, before, after, unpublisher, finisher, left, commands } of HINDRANCES) {
  for (const command of commands) {
    test(`media ${command} says what ${what} leaves, and unpublish finishes it`, async (place) => {
      const { folder, media } = place;
      const { token, ...paths } = await publish(place, "nobody");
      const asRoot = (script: string) =>
        place.script("root", `content=${paths.content} mark=${paths.mark}\n${script}`);
      await asRoot(before);
      const tombstone = { token, state: "unpublished", kind: "audio" };
      await Deno.writeTextFile(`${folder}/list`, `${JSON.stringify(tombstone)}\n`);
      const first = await media(unpublisher, command, command === "import" ? "list" : token);
      const path = paths[left];
      const report = `media: ${token} is unpublished, but "${path}" cannot be deleted (`;
      assertEquals(first.stderr.slice(0, report.length), report);
      assertMatch(
        `${first.code} ${first.stdout}`,
        command === "import" ? /^1 Added: 1 \(1 of them unpublished\)/ : /^1 Unpublished /,
      );
      assertMatch((await media("nobody", "list")).stdout, / unpublished {2}/);
      const files = await filesIn(`${folder}/real`);
      assertEquals(
        files.filter((file) => file.endsWith(path.slice(-64))).length,
        left === "mark" ? 1 : 2,
      );

      assertEquals((await media(unpublisher, "publish", "b.mp4")).code, 0);
      const still = await media(unpublisher, "unpublish", token);
      assertEquals(still.code, 1);
      assertEquals(still.stderr.slice(0, report.length), report);
      assertEquals(still.stderr.split("\n")[1], `media: Token "${token}" is already unpublished`);

      await asRoot(after);
      const last = await media(finisher, "unpublish", token);
      const done = `Token "${token}" is already unpublished; deleted what was left:\n  ${path}\n`;
      assertEquals([last.code, last.stdout, last.stderr], [0, done, ""]);
      const rest = await filesIn(`${folder}/real`);
      assertEquals(rest.filter((file) => file.endsWith(path.slice(-64))), []);
      assertEquals((await media(finisher, "unpublish", token)).code, 1);
      const verified = await media("nobody", "verify", "--content");
      assertMatch(verified.stdout, /^1 item verified: 1 as published, .* 0 unused\n$/);
    });
  }
}
