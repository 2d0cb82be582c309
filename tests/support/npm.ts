/** The library's tarball, installed with npm. */

import { assertEquals } from "@std/assert";
import { copy } from "./copy.ts";
import { madeOnce } from "./made_once.ts";
import { fromRoot } from "./paths.ts";
import { pathOf, program } from "./permissions.ts";

/** Whether the registry answers, which is asked once for all tests of a file. */
let answers: boolean | undefined;

/** What tests need to install it. */
export const NPM = [
  "processes",
  program("npm"),
  {
    what: "the npm registry",
    isMet: () => {
      const npm = pathOf("npm");
      const args = ["view", "--prefer-offline", "hono@4.13.19", "version"];
      return answers ??= npm !== undefined && new Deno.Command(npm, { args }).outputSync().success;
    },
  },
] as const;

/** Runs a program to its end, and returns its exit status and output. */
export async function run(cwd: string, program: string, ...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(program, { args, cwd }).output();
  const [text, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, text: text ?? "", errors: errors ?? "" };
}

/** A release of Node or Bun, by an alias: what takes npm longest, and needs no other package. */
const RUNTIME = /^(\w+)@npm:((?:node|@oven\/bun)-linux-x64)@(.+)$/;

/** Installs the tarball beside other packages in a new folder; its code is as `type` says. */
export async function installTarball(packages: readonly string[], type = "module") {
  const packed = await madeOnce("tarball", pack);
  const folder = await Deno.makeTempDir({ prefix: "it's $1 " });
  copy(`${packed}/it's $1`, folder);
  await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify({ type }));
  const path = await Deno.readTextFile(`${packed}/printed`);
  await install(folder, path, ...await Promise.all(packages.map(linked)));
  const [name = ""] = [...Deno.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => name.endsWith(".tgz"));
  return { folder, tarball: `${folder}/${name}` };
}

/** Returns a package as npm takes it, which only links a runtime that is installed once for all. */
async function linked(aliased: string): Promise<string> {
  const [, alias, name, version] = RUNTIME.exec(aliased) ?? [];
  if (name === undefined) return aliased;
  const exact = `${name}@${version}`;
  const folder = await madeOnce(exact.replace("/", "+"), (folder) => install(folder, exact));
  return `${alias}@file:${folder}/node_modules/${name}`;
}

/** Packs the tarball into a folder of a folder, beside the path that was printed. */
async function pack(folder: string): Promise<void> {
  // As in a checkout of a remote, with a password.
  const settings = {
    COUNT: 1,
    KEY_0: "remote.origin.url",
    VALUE_0: "https://a:b@example.com/c.git",
  };
  const env = Object.entries(settings).map(([name, value]) => `GIT_CONFIG_${name}=${value}`);
  const words = [Deno.execPath(), "task", "--quiet", "pack", `${folder}/it's $1`];
  const packed = await run(fromRoot("."), "env", ...env, ...words);
  assertEquals(packed.code, 0, packed.errors);
  await Deno.writeTextFile(`${folder}/printed`, packed.text.trim());
}

/** Installs packages in a folder, as words for a shell. */
async function install(folder: string, ...packages: readonly string[]): Promise<void> {
  const options = ["--prefix=.", "--prefer-offline", "--no-audit", "--no-fund"];
  const words = ["npm", "install", ...options, ...packages];
  const npm = await run(folder, "sh", "-c", words.join(" ")); // pastes the path as it was printed
  assertEquals(npm.code, 0, npm.errors);
}
