/** Several users who publish into one folder: real ones, with the permissions of the media task. */

import { assertEquals, assertMatch } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { openLedgerIn } from "../support/local_storage.ts";
import { SAMPLE_MP3, SAMPLE_MP4 } from "../support/paths.ts";
import { needing, shared } from "../support/permissions.ts";
import { inFolder } from "../support/media_cli.ts";
import type { CommandResult } from "../support/run.ts";
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

/** What root may not do in the storage of another user, where a list of URLs and an item are. */
const REFUSED = [
  ["publish", "a.mp3"],
  ["publish", "http://127.0.0.1:1/a.mp3"],
  ["import", "urls"],
  ["import", "--dry-run", "urls"],
  ["list"],
  ["verify"],
  ["usage"],
  ["unpublish", newToken()],
];

const URLS = `{"location":"https://h/a.mp3","kind":"audio","token":"${newToken()}"}\n`;

/** Describes all that is below a folder, and whose it is. */
async function factsIn(folder: string): Promise<unknown[]> {
  return await Promise.all((await filesIn(folder)).map(async (path) => {
    const { uid, ino, mode, size, isSymlink } = await Deno.lstat(path);
    return [path, uid, ino, mode, isSymlink ? 0 : size];
  }));
}

test("root keeps out of another user's storage, and the line that it prints works as it is", async (place) => {
  const { folder, script } = place;
  await script("nobody", "mkdir own; cp a.mp3 own");
  const own = { ...place, folder: `${folder}/own` };
  await Deno.writeTextFile(`${folder}/own/urls`, URLS);
  const refused = async (args: string[]) => {
    const before = await factsIn(folder);
    const { code, stdout, stderr } = await installation().media("root", own.folder, args);
    assertEquals([code, stdout], [1, ""], args.join(" "));
    assertMatch(
      stderr,
      /^media: files: "\/.*\/own" \((?:CONTENT|DATABASE_URL)\) belongs to .* 65534, so root must not/,
    );
    assertEquals(await factsIn(folder), before);
    return stderr.split("\n")[1] ?? "";
  };
  for (const args of REFUSED) await refused(args); // where there is no catalogue yet
  const pasted = async (args: string[]) => {
    const line = await refused(args);
    const { code, stdout, stderr } = await installation().paste(own.folder, line);
    assertEquals(code, 0, stderr);
    return stdout;
  };
  await pasted(["publish", "a.mp3"]);
  assertMatch(await pasted(["import", "urls"]), /^Added: 1; /m);
  assertEquals((await pasted(["list"])).match(/\bpublished\b/g)?.length, 2);
  for (const args of REFUSED) await refused(args);
  const found = await installation().media("nobody", own.folder, ["verify", "--no-urls"]);
  assertEquals(found.code, 0, found.stderr);
});

for (
  const name of [
    "catalogue.sqlite",
    "catalogue.sqlite-wal",
    "catalogue.sqlite-ledger",
    "files",
    ".",
  ]
) {
  for (const target of ["empty", "absent"]) {
    test(`root follows no link ${name} to what is ${target}, which another user has made`, async (place) => {
      const { folder, script } = place;
      await script("nobody", "mkdir own; cp a.mp3 own");
      const storage = name === "." ? `${folder}/link` : `${folder}/own`;
      await script("root", "mkdir outside; mkdir outside/folder; : > outside/empty");
      const aim = name === "files" ? "outside/folder" : `outside/${target}`;
      await script(
        "nobody",
        name === "." ? "ln -s outside link" : `ln -s ${folder}/${aim} own/${name}`,
      );
      await Deno.writeTextFile(`${folder}/own/urls`, URLS);
      await Deno.copyFile(`${folder}/own/urls`, `${folder}/outside/urls`);
      const before = await factsIn(folder);
      for (const args of [["import", "urls"], ["publish", "a.mp3"], ["list"]]) {
        const { code } = await installation().media("root", storage, args);
        assertEquals(code, 1, args.join(" "));
        assertEquals(await factsIn(folder), before, args.join(" "));
      }
    });
  }
}

test("root uses what is its own, and where nobody else may write on the way", async ({ folder, script }) => {
  await script(
    "root",
    "mkdir -m 755 real-own; mkdir -m 1777 sticky; mkdir -m 777 open; ln -s real-own own",
  );
  for (const [place, isFit] of [["own", true], ["sticky", true], ["open", false]] as const) {
    await Deno.chmod(folder, 0o755);
    await Deno.writeTextFile(`${folder}/${place}/urls`, URLS);
    const args = ["import", "urls", "--rejects", `${folder}/rejects-${place}`];
    const { code, stderr } = await installation().media("root", `${folder}/${place}`, args);
    assertEquals(code, isFit ? 0 : 1, stderr);
    if (!isFit) {
      assertMatch(stderr, / leads through ".*\/open", in which others than root may write; /);
    }
  }
  // Reports go where they are told.
  await script("root", "install -d -o nobody theirs");
  await (await openLedgerIn(`${folder}/own`)).close(); // as a server does
  const html = await installation().media("root", `${folder}/own`, [
    "usage",
    "--html",
    `${folder}/theirs/r.html`,
  ]);
  assertEquals(html.code, 0, html.stderr);
});

test("publishing touches nothing outside after another user has linked to it", async (place) => {
  const { folder, media } = place;
  await place.script("nobody", "chmod 777 real; mkdir other; touch other/{diary,empty}");
  await publish(place, "nobody");
  const other = () => filesIn(`${folder}/other`);
  const before = await other();
  // What else may be linked: storage/content/folder/hostile_test.ts.
  await place.script("daemon", "cd real; ln -s ../other di; : > unsettled/diary");
  assertEquals((await media("nobody", "publish", "b.mp4")).code, 0);
  await place.script("daemon", "cd real; mv staged old; ln -s ../other staged");
  const { code, stderr } = await media("nobody", "publish", "b.mp4", "--again");
  assertEquals([code, await other()], [1, before]);
  assertMatch(stderr, /"\/.*\/staged" is a symbolic link, expected a folder/);
});

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
