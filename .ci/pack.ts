/**
 * Packs the lifecycle library into `dist/`, or the folder that is given: for npm as one tarball, and
 * for JSR as the folder `jsr`, in which `deno publish` runs. The tarball also has the record of calls,
 * `usage`, as ES modules.
 */

import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import project from "../deno.json" with { type: "json" };
import * as library from "../lib/lifecycle/mod.ts";

/** The compiler, which keeps comments; `deno bundle` removes them. */
const TYPESCRIPT = "npm:typescript@7.0.2/tsc";

/** The packages that `usage` needs: one that also installs on Node 20, and one for PostgreSQL. */
const [COMMANDER, PG] = ["^14.0.3", "^8.16.0"];

const KEYWORDS = [
  ...["deprecation", "sunset", "brownout", "rfc9745", "rfc8594", "link", "http", "middleware"],
  ...["express", "koa", "fastify", "nestjs", "hono", "deno", "cloudflare-workers"],
];

/** The program `lifecycle`. */
const COMMAND = `#!/usr/bin/env node
import process from "node:process";

const [command, ...args] = process.argv.slice(2);
if (command === "usage") {
  const { runUsage } = await import("./usage/program.mjs");
  process.exitCode = await runUsage(args);
} else {
  await import("./lifecycle/command.js");
}
`;

const root = join(import.meta.dirname ?? "", "..");
const folder = resolve(root, Deno.args[0] ?? "dist");
const stage = await Deno.makeTempDir();
try {
  const { version, license } = project;
  const name = "@media-head/lifecycle";
  const sources = join(folder, "jsr");
  await Deno.mkdir(sources, { recursive: true });
  await Deno.remove(sources, { recursive: true }); // of an earlier version
  const modules = new Set(["lifecycle/mod.ts"]);
  for (const path of modules) { // which grows on the way
    const text = await Deno.readTextFile(join(root, "lib", path));
    await Deno.mkdir(join(sources, dirname(path)), { recursive: true });
    await Deno.writeTextFile(join(sources, path), text);
    for (const [, other = ""] of text.matchAll(/^(?:im|ex)port [^;]*?from "(\..+?)";$/gm)) {
      modules.add(join(dirname(path), other));
    }
  }
  const config = { name, version, license, exports: "./lifecycle/mod.ts" };
  await Deno.writeTextFile(join(sources, "deno.json"), JSON.stringify(config));
  await Deno.copyFile(join(root, "lib/lifecycle/README.md"), join(sources, "README.md"));
  await Deno.copyFile(join(root, "LICENSE"), join(sources, "LICENSE"));
  const target = join(stage, "npm/package");
  await compile("commonjs", target, "lib/lifecycle/mod.ts", "lib/lifecycle/command.ts");
  // The type declarations of `deno pack` are those of the interface, without what modules share.
  const output = join(stage, "deno.tgz");
  await run(sources, Deno.execPath(), "pack", "--no-source-maps", `--output=${output}`);
  await run(stage, "tar", "-xzf", output);
  for (const path of modules) {
    // Examples stand beside the types, where editors show them.
    const module = join(target, path.replace(/ts$/, "js"));
    const source = await Deno.readTextFile(module);
    await Deno.writeTextFile(module, source.replaceAll(/ \*\n \* @example[^]*?(?= \*\/)/g, ""));
    const types = path.replace(/ts$/, "d.ts");
    const text = await Deno.readTextFile(join(stage, "package", types)).catch(() => undefined);
    if (text === undefined) continue; // an internal module
    await Deno.writeTextFile(join(target, types), text.replaceAll("*/ ", "*/\n"));
  }
  const wrapper =
    `// An ES module of what require() loads. A second implementation would not know the first one's
// announced responses, and its PolicyError would be another class.
import lifecycle from "./lifecycle/mod.js";
export const { ${Object.keys(library).join(", ")} } = lifecycle;`;
  await Deno.writeTextFile(join(target, "mod.mjs"), wrapper);
  await Deno.writeTextFile(join(target, "mod.d.mts"), 'export * from "./lifecycle/mod.js";');
  await addUsage(target);
  await Deno.writeTextFile(join(target, "command.mjs"), COMMAND);
  await run(
    target,
    Deno.execPath(),
    "fmt",
    "--quiet",
    "--no-config",
    "--use-tabs",
    "--line-width=100",
    ".",
  );

  await Deno.copyFile(join(root, "lib/lifecycle/README.md"), join(target, "README.md"));
  await Deno.copyFile(join(root, "LICENSE"), join(target, "LICENSE"));
  const required = { types: "./lifecycle/mod.d.ts", default: "./lifecycle/mod.js" };
  const imported = { types: "./mod.d.mts", default: "./mod.mjs" };
  const words = ["config", "--get", "remote.origin.url"];
  const remote = await new Deno.Command("git", { args: words, cwd: root }).output();
  // Without the password that a remote may have.
  const url = new TextDecoder().decode(remote.stdout).trim().replace(
    /^https:\/\/[^/]*@/,
    "https://",
  );
  const manifest = {
    name,
    version,
    description: "Retires HTTP endpoints by the RFCs, and records who still calls them",
    keywords: KEYWORDS,
    license,
    ...remote.success && /^https:|^git@/.test(url) ? { repository: { type: "git", url } } : {},
    type: "commonjs",
    engines: { node: ">=20" },
    main: required.default,
    types: required.types,
    exports: {
      ".": { import: imported, require: required },
      "./usage": { types: "./usage/mod.d.mts", default: "./usage/mod.mjs" },
      "./package.json": "./package.json",
    },
    bin: { lifecycle: "command.mjs" },
    sideEffects: false,
    dependencies: { commander: COMMANDER },
    peerDependencies: { pg: PG },
    peerDependenciesMeta: { pg: { optional: true } },
  };
  await Deno.writeTextFile(join(target, "package.json"), JSON.stringify(manifest, undefined, 2));
  const tarball = join(folder, `media-head-lifecycle-${version}.tgz`);
  await run(dirname(target), "tar", "-czf", tarball, "package");
  console.log(/[^\w@%+=:,./-]/.test(tarball) ? `'${tarball.replaceAll("'", "'\\''")}'` : tarball);
} finally {
  await Deno.remove(stage, { recursive: true });
}

/** Compiles modules and all that they import. */
async function compile(module: string, folder: string, ...words: string[]): Promise<void> {
  await run(
    root,
    ...[Deno.execPath(), "run", "--quiet", "--no-lock", "--allow-all", TYPESCRIPT],
    ...["--ignoreConfig", "--noCheck", "--rewriteRelativeImportExtensions"],
    ...["--target", "es2022", "--module", module, "--moduleResolution", "bundler"],
    ...["--esModuleInterop", "--rootDir", "lib", "--outDir", folder, ...words],
  );
}

/**
 * Adds the record of calls as ES modules. They import the library by its name, and its other modules
 * where they are, so that nothing of it is there twice.
 */
async function addUsage(target: string): Promise<void> {
  const all = join(stage, "usage");
  await compile("es2022", all, "--declaration", "lib/usage/mod.ts", "lib/usage/program.ts");
  const isOfLibrary = (path: string) => Deno.stat(join(target, path)).then(() => true, () => false);
  const standard = new Set<string>();
  const modules = new Set(["usage/mod.d.ts", "usage/mod.js", "usage/program.js"]);
  for (const path of modules) { // which grows on the way
    let text = await Deno.readTextFile(join(all, path));
    for (const [found, before, name = ""] of text.matchAll(/(from |import\()"([.@][^"]+)"/g)) {
      let to = name;
      if (name.startsWith("@std/")) {
        standard.add(name);
        to = `${relative(dirname(path), name.replace("@", ""))}.mjs`;
      } else {
        const other = join(dirname(path), name);
        if (other.startsWith("lifecycle/")) to = "@media-head/lifecycle";
        else if (!await isOfLibrary(other)) {
          modules.add(path.endsWith(".d.ts") ? other.replace(/[jt]s$/, "d.ts") : other);
          to = name.replace(/[jt]s$/, "mjs");
        }
      }
      text = text.replaceAll(found, `${before}"${to}"`);
    }
    const name = path.replace(/([jt]s)$/, "m$1");
    await Deno.mkdir(dirname(join(target, name)), { recursive: true });
    await Deno.writeTextFile(join(target, name), text);
  }
  for (const name of standard) {
    await import(name); // has Deno download it
    const copy = join(target, name.replace("@", ""));
    await Deno.mkdir(dirname(copy), { recursive: true });
    await Deno.copyFile(fileURLToPath(import.meta.resolve(name)), `${copy}.mjs`);
  }
}

/** Runs a program in a folder, and prints what it says only if it fails. */
async function run(cwd: string, program: string, ...args: string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args, cwd }).output();
  if (success) return;
  for (const output of [stdout, stderr]) await Deno.stderr.write(output);
  throw new Error(`${program} ${args[0]} failed`);
}
