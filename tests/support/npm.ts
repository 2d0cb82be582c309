/** The library's tarball, installed with npm. */

import { assertEquals } from "@std/assert";
import { fromRoot } from "./paths.ts";
import { pathOf, program } from "./permissions.ts";

/** What tests need to install it. */
export const NPM = [
  "processes",
  program("npm"),
  {
    what: "the npm registry",
    isMet: () => {
      const npm = pathOf("npm");
      const args = ["view", "--prefer-offline", "hono@4.13.19", "version"];
      return npm !== undefined && new Deno.Command(npm, { args }).outputSync().success;
    },
  },
] as const;

/** Runs a program to its end, and returns its exit status and output. */
export async function run(cwd: string, program: string, ...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(program, { args, cwd }).output();
  const [text, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, text: text ?? "", errors: errors ?? "" };
}

/** Installs the tarball beside other packages in a new folder; its code is as `type` says. */
export async function installTarball(packages: readonly string[], type = "module") {
  const folder = await Deno.makeTempDir({ prefix: "it's $1 " });
  // As in a checkout of a remote, with a password.
  const settings = {
    COUNT: 1,
    KEY_0: "remote.origin.url",
    VALUE_0: "https://a:b@example.com/c.git",
  };
  const env = Object.entries(settings).map(([name, value]) => `GIT_CONFIG_${name}=${value}`);
  const words = [Deno.execPath(), "task", "--quiet", "pack", folder];
  const packed = await run(fromRoot("."), "env", ...env, ...words);
  assertEquals(packed.code, 0, packed.errors);
  await Deno.writeTextFile(`${folder}/package.json`, JSON.stringify({ type }));
  const options = ["--prefer-offline", "--no-audit", "--no-fund"];
  const install = ["npm", "install", ...options, packed.text.trim(), ...packages];
  const npm = await run(folder, "sh", "-c", install.join(" ")); // pastes the path as it was printed
  assertEquals(npm.code, 0, npm.errors);
  const [name = ""] = [...Deno.readDirSync(folder)].map(({ name }) => name)
    .filter((name) => name.endsWith(".tgz"));
  return { folder, tarball: `${folder}/${name}` };
}
