/**
 * Packs the lifecycle library into `dist/`, or the folder that is given: for npm as one tarball, and
 * for JSR as the folder `jsr`, in which `deno publish` runs.
 */

import { dirname, join, resolve } from "node:path";
import project from "../deno.json" with { type: "json" };

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
  // The type declarations are those of `deno pack`; a bundle is half as large as its modules.
  const output = join(stage, "deno.tgz");
  await run(sources, Deno.execPath(), "pack", "--no-source-maps", `--output=${output}`);
  await run(stage, "tar", "-xzf", output);
  for (const path of modules) {
    const types = path.replace(/ts$/, "d.ts");
    await Deno.mkdir(join(target, dirname(types)), { recursive: true });
    const from = join(stage, "package", types);
    await Deno.rename(from, join(target, types)).catch(() => {}); // internal ones have none
  }
  const entries = ["mod", "command"].map((name) => join(root, `lib/lifecycle/${name}.ts`));
  const options = ["--platform=browser", "--external=node:*", "--code-splitting", "--minify"];
  await run(root, Deno.execPath(), "bundle", ...options, `--outdir=${target}`, ...entries);

  await Deno.copyFile(join(root, "lib/lifecycle/README.md"), join(target, "README.md"));
  await Deno.copyFile(join(root, "LICENSE"), join(target, "LICENSE"));
  const entry = { types: "./lifecycle/mod.d.ts", default: "./mod.js" };
  const manifest = {
    name,
    version,
    description: "Retires HTTP endpoints by the RFCs, and checks how others do",
    license,
    type: "module",
    engines: { node: ">=20" },
    main: entry.default,
    types: entry.types,
    exports: { ".": entry },
    bin: { lifecycle: "command.js" },
    sideEffects: false,
  };
  await Deno.writeTextFile(join(target, "package.json"), JSON.stringify(manifest, undefined, 2));
  const tarball = join(folder, `media-head-lifecycle-${version}.tgz`);
  await run(dirname(target), "tar", "-czf", tarball, "package");
  console.log(/[^\w@%+=:,./-]/.test(tarball) ? `'${tarball.replaceAll("'", "'\\''")}'` : tarball);
} finally {
  await Deno.remove(stage, { recursive: true });
}

/** Runs a program in a folder, and prints what it says only if it fails. */
async function run(cwd: string, program: string, ...args: string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args, cwd }).output();
  if (success) return;
  for (const output of [stdout, stderr]) await Deno.stderr.write(output);
  throw new Error(`${program} ${args[0]} failed`);
}
