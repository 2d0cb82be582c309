/**
 * Other releases of Deno, from npm. Old ones say that they are too old; the oldest that is accepted
 * and the newest that there is answer the whole table, as the one that runs the tests does.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { refusalOfRelease } from "../../lib/server/runtime.ts";
import { copyProject } from "../support/copy.ts";
import { openLocal } from "../support/local_storage.ts";
import { inFolder } from "../support/media_cli.ts";
import { NPM } from "../support/npm.ts";
import { needing, program } from "../support/permissions.ts";
import { storageIn } from "../support/server.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { runTable } from "../support/table_on_server.ts";

const test = needing(...NPM, program("npx"));

/** Runs a program in a folder to its end; a server that starts is stopped after two minutes. */
async function run(
  name: string,
  args: readonly string[],
  cwd: string,
  env: Record<string, string> = {},
) {
  const signal = AbortSignal.timeout(120_000);
  const output = await new Deno.Command(name, { args: [...args], cwd, env, signal }).output();
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes).trimEnd();
  return { code: output.code, stdout: decode(output.stdout), stderr: decode(output.stderr) };
}

/** Downloads a release, unless npm has it, and returns the path of its program. */
async function download(version: string, folder: string): Promise<string> {
  const args = ["--yes", `deno@${version}`, "eval", "console.log(Deno.execPath())"];
  const { code, stdout, stderr } = await run("npx", args, folder);
  assertEquals(code, 0, stderr);
  return stdout;
}

/** A cache of Deno's own, since releases clear each other's, with the packages of this one. */
async function cacheIn(folder: string): Promise<string> {
  const { stdout } = await run(Deno.execPath(), ["info", "--json"], folder);
  const cache = await Deno.makeTempDir({ dir: folder });
  await Deno.symlink(JSON.parse(stdout).npmCache, `${cache}/npm`);
  return cache;
}

/** Old releases, and whether they can read deno.json. */
const TOO_OLD: [version: string, readsSettings: boolean][] = [
  ["2.5.0", false], // its permissions
  ["2.6.7", true],
  ["2.8.2", true], // would start, and compress a GET and not its HEAD
  ["2.9.1", true], // would say `content-length: 0` on every HEAD
];

test("on a release that is too old, the server and the commands end with one sentence", () =>
  inFolder(async (folder) => {
    const project = `${folder}/project`;
    copyProject(project);
    await sideBySide(TOO_OLD, async ([version, readsSettings]) => {
      const deno = await download(version, folder);
      const env = { ...storageIn(folder), DENO_DIR: await cacheIn(folder), NO_COLOR: "1" };
      const started = ["run", "--allow-all", "main.ts"];
      const commands = [started, [...started, "media", "usage", "--gate", "30"]];
      const tasks = ["start", "media list"].map((task) => `task --quiet ${task}`.split(" "));
      for (const args of [...commands, ...(readsSettings ? tasks : [])]) {
        assertEquals(await run(deno, args, project, env), {
          code: 2,
          stdout: "",
          stderr: refusalOfRelease(version),
        }, args.join(" "));
      }
    });
    const left = Array.from(Deno.readDirSync(folder), ({ name }) => name);
    assert(!left.some((name) => name.startsWith("catalogue")), "something was started");
  }));

test("the oldest release, and the newest on npm, answer the whole table", (t) =>
  inFolder(async (folder) => {
    const { stdout: newest } = await run("npm", ["view", "deno", "version"], folder);
    assertMatch(newest, /^\d+\.\d+\.\d+$/);
    for (const version of new Set(["2.9.2", newest])) {
      if (version === Deno.version.deno) continue; // by tests/wire/deploy_test.ts
      await t.step(`Deno ${version}`, async (t) => {
        const deno = await download(version, folder);
        const environment = { DENO_DIR: await cacheIn(folder) };
        await using subject = await openLocal();
        await runTable(t, subject, subject.folder, { environment, deno });
      });
    }
  }));
