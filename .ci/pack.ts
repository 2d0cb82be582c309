/**
 * Packs the lifecycle library into `dist/`, or the folder that is given: for npm as one tarball, and
 * for JSR as the folder `jsr`, in which `deno publish` runs. The tarball also has the record of calls,
 * `usage`. Its modules are CommonJS, each there once; an ES module beside each entry wraps it.
 */

import { dirname, join, posix, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import project from "../deno.json" with { type: "json" };
import * as library from "../lib/lifecycle/mod.ts";
import * as usage from "../lib/usage/mod.ts";

/** The compiler, which keeps comments; `deno bundle` removes them. */
const TYPESCRIPT = "npm:typescript@7.0.2/tsc";

/** The packages of the program, which also installs on Node 20, and for PostgreSQL. */
const [COMMANDER, PG] = ["^14.0.3", "^8.16.0"];

const KEYWORDS = [
  ...["deprecation", "sunset", "brownout", "rfc9745", "rfc8594", "link", "http", "middleware"],
  ...["express", "koa", "fastify", "nestjs", "hono", "bun", "deno", "cloudflare-workers"],
];

/** The modules that users load, and what each exports to a program. */
const ENTRIES = { lifecycle: Object.keys(library), usage: Object.keys(usage) };

/** The pages for JSR and for npm: where each is in the repository, and in what is packed. */
const JSR_PAGES = {
  "lib/lifecycle/README.md": "README.md",
  "lib/lifecycle/frameworks.md": "frameworks.md",
  "lib/lifecycle/clients.md": "clients.md",
};
const NPM_PAGES = {
  ...JSR_PAGES,
  "lib/usage/README.md": "usage/README.md",
  "lib/usage/applications.md": "usage/applications.md",
  "lib/usage/front/README.md": "usage/front/README.md",
};

/** The program `lifecycle`. */
const PROGRAM = "usage/lifecycle_program";

const root = join(import.meta.dirname ?? "", "..");
const folder = resolve(root, Deno.args[0] ?? "dist");
const stage = await Deno.makeTempDir();
try {
  const declared: { version: string; license: string; homepage?: string } = project;
  const { version, license } = declared;
  const name = "@media-head/lifecycle";
  const jsr = join(folder, "jsr");
  await Deno.mkdir(jsr, { recursive: true });
  await Deno.remove(jsr, { recursive: true }); // of an earlier version
  await copyModules(jsr, "lifecycle/mod.ts");
  const config = { name, version, license, exports: "./lifecycle/mod.ts" };
  await Deno.writeTextFile(join(jsr, "deno.json"), JSON.stringify(config));
  await copyDocuments(jsr, JSR_PAGES);

  const [sources, target] = [join(stage, "sources"), join(stage, "npm/package")];
  const mains = [...Object.keys(ENTRIES).map((entry) => `${entry}/mod.ts`), `${PROGRAM}.ts`];
  const packages = await copyModules(sources, ...mains);
  const ofStandardLibrary = packages.filter((name) => name.startsWith("@std/")).map(copyOf);
  await compile(sources, target, [...mains, ...ofStandardLibrary]);
  await addTypes(sources, target, packages);
  for (const [entry, names] of Object.entries(ENTRIES)) {
    const wrapper =
      `// An ES module of what require() loads. A second implementation would not know the first one's
// announced responses, and its PolicyError would be another class.
import entry from "./mod.js";
export const { ${names.join(", ")} } = entry;`;
    await Deno.writeTextFile(join(target, entry, "mod.mjs"), wrapper);
    await Deno.writeTextFile(join(target, entry, "mod.d.mts"), 'export * from "./mod.js";');
  }
  const format = ["fmt", "--quiet", "--no-config", "--use-tabs", "--line-width=100", "."];
  await run(target, Deno.execPath(), ...format);
  await copyDocuments(target, NPM_PAGES);
  const words = ["config", "--get", "remote.origin.url"];
  const remote = await new Deno.Command("git", { args: words, cwd: root }).output();
  // Without the password that a remote may have.
  const url = new TextDecoder().decode(remote.stdout).trim().replace(
    /^https:\/\/[^/]*@/,
    "https://",
  );
  const page = url.replace(/^git@(.+?):/, "https://$1/").replace(/\.git$/, "");
  const { homepage = page } = declared;
  const manifest = {
    name,
    version,
    description: "Retires HTTP endpoints by the RFCs, and records who still calls them",
    keywords: KEYWORDS,
    license,
    ...homepage.startsWith("https:") ? { homepage } : {},
    ...remote.success && /^https:|^git@/.test(url) ? { repository: { type: "git", url } } : {},
    type: "commonjs",
    engines: { node: ">=20" },
    main: "./lifecycle/mod.js",
    types: "./lifecycle/mod.d.ts",
    exports: {
      ".": waysInto("lifecycle"),
      "./usage": waysInto("usage"),
      "./package.json": "./package.json",
    },
    bin: { lifecycle: `${PROGRAM}.js` },
    sideEffects: false,
    dependencies: { commander: COMMANDER },
    peerDependencies: { pg: PG },
    peerDependenciesMeta: { pg: { optional: true } },
  };
  await Deno.writeTextFile(join(target, "package.json"), JSON.stringify(manifest, undefined, 2));
  // Where `exports` is not read, as with TypeScript's `node10`, the folder is the entry.
  const older = { type: "commonjs", main: "mod.js", types: "mod.d.ts" };
  await Deno.writeTextFile(join(target, "usage/package.json"), JSON.stringify(older, undefined, 2));
  const tarball = join(folder, `media-head-lifecycle-${version}.tgz`);
  await run(dirname(target), "tar", "-czf", tarball, "package");
  console.log(/[^\w@%+=:,./-]/.test(tarball) ? `'${tarball.replaceAll("'", "'\\''")}'` : tarball);
} finally {
  await Deno.remove(stage, { recursive: true });
}

/** Returns the files that `import` and `require` load for an entry. */
function waysInto(entry: keyof typeof ENTRIES) {
  const path = `./${entry}/mod`;
  return {
    import: { types: `${path}.d.mts`, default: `${path}.mjs` },
    require: { types: `${path}.d.ts`, default: `${path}.js` },
  };
}

/**
 * Copies modules of `lib/` and all that they import, also of the standard library. Where a module has
 * a variant for CommonJS, that is copied in its place.
 *
 * @returns The packages that they import.
 */
async function copyModules(target: string, ...mains: string[]): Promise<string[]> {
  const [modules, packages] = [new Set(mains), new Set<string>()];
  for (const path of modules) { // which grows on the way
    const source = join(root, "lib", path);
    const variant = source.replace(/ts$/, "cts");
    const text = await Deno.readTextFile(variant).catch(() => Deno.readTextFile(source));
    await Deno.mkdir(join(target, dirname(path)), { recursive: true });
    await Deno.writeTextFile(join(target, path), text);
    for (const [, name = ""] of text.matchAll(/(?:^(?:im|ex)port [^;]*?|\bimport\()"(.+?)"/gm)) {
      if (name.startsWith(".")) modules.add(join(dirname(path), name));
      else if (!name.startsWith("node:")) packages.add(name);
    }
  }
  for (const name of packages) {
    if (!name.startsWith("@std/")) continue;
    await import(name); // has Deno download it
    await copyWithImports(fileURLToPath(import.meta.resolve(name)), join(target, copyOf(name)));
  }
  return [...packages];
}

/** Copies a module of the standard library, and those beside it that it imports. */
async function copyWithImports(source: string, copy: string): Promise<void> {
  await Deno.mkdir(dirname(copy), { recursive: true });
  await Deno.copyFile(source, copy);
  const text = await Deno.readTextFile(source);
  for (const [, path = ""] of text.matchAll(/^(?:im|ex)port [^;]*?"(\..+?)"/gm)) {
    await copyWithImports(join(dirname(source), path), join(dirname(copy), path));
  }
}

/** Returns the place of a module of the standard library, e.g. of `@std/async/delay`. */
function copyOf(name: string): string {
  return `${name.replace("@", "")}.js`;
}

/** Copies the licence and pages. A link to what is not copied becomes its text. */
async function copyDocuments(target: string, pages: Readonly<Record<string, string>>) {
  await Deno.copyFile(join(root, "LICENSE"), join(target, "LICENSE"));
  for (const [path, copy] of Object.entries(pages)) {
    const page = await Deno.readTextFile(join(root, path));
    const packed = page.replaceAll(
      /\[([^\]]+)\]\(([^)#:]+)(#[^)]+)?\)/g,
      (_, text, target, fragment = "") => {
        const to = pages[posix.join(posix.dirname(path), target)];
        if (to === undefined) return text;
        return `[${text}](${posix.relative(posix.dirname(copy), to)}${fragment})`;
      },
    );
    await Deno.writeTextFile(join(target, copy), packed);
  }
}

/** Compiles modules, and all that they import, to CommonJS. */
async function compile(sources: string, target: string, mains: string[]): Promise<void> {
  await run(
    sources,
    ...[Deno.execPath(), "run", "--quiet", "--no-lock", "--no-config", "--allow-all", TYPESCRIPT],
    ...["--ignoreConfig", "--noCheck", "--rewriteRelativeImportExtensions", "--allowJs"],
    ...["--target", "es2022", "--module", "commonjs", "--moduleResolution", "bundler"],
    ...["--esModuleInterop", "--rootDir", ".", "--outDir", target, ...mains],
  );
  for (const path of filesIn(target)) {
    const text = await Deno.readTextFile(join(target, path));
    const compiled = text
      .replaceAll(/"(@std\/.+?)"/g, (_, name) => `"${relative(dirname(path), copyOf(name))}"`)
      .replaceAll(/ \*\n \* @example[^]*?(?= \*\/)/g, ""); // editors show those of the types
    await Deno.writeTextFile(join(target, path), compiled);
  }
}

/** Adds the type declarations of the interface, without what modules share: those of `deno pack`. */
async function addTypes(sources: string, target: string, packages: string[]): Promise<void> {
  const imports: Record<string, string> = project.imports;
  const config = {
    ...{ name: "@media-head/types", version: project.version },
    exports: { ".": "./lifecycle/mod.ts", "./usage": "./usage/mod.ts" },
    imports: Object.fromEntries(packages.map((name) => [name, imports[name]])),
    compilerOptions: { types: ["./std.d.ts"] },
  };
  await Deno.writeTextFile(join(sources, "deno.json"), JSON.stringify(config));
  await Deno.copyFile(join(root, "lib/std.d.ts"), join(sources, "std.d.ts"));
  const output = join(stage, "deno.tgz");
  await run(sources, Deno.execPath(), "pack", "--no-source-maps", `--output=${output}`);
  await run(stage, "tar", "-xzf", output);
  for (const path of filesIn(join(stage, "package"))) {
    if (!path.endsWith(".d.ts") || path === "std.d.ts") continue;
    const text = await Deno.readTextFile(join(stage, "package", path));
    await Deno.writeTextFile(join(target, path), text.replaceAll("*/ ", "*/\n"));
  }
}

/** Lists the files in a folder and its folders. */
function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesIn(join(folder, name)).map((path) => join(name, path)) : [name]
  );
}

/** Runs a program in a folder, and prints what it says only if it fails. */
async function run(cwd: string, program: string, ...args: string[]): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(program, { args, cwd }).output();
  if (success) return;
  for (const output of [stdout, stderr]) await Deno.stderr.write(output);
  throw new Error(`${program} ${args[0]} failed`);
}
