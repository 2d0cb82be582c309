/** The pages of the documentation: that they lead somewhere, and name what is there. */

import { assert, assertEquals, assertMatch } from "@std/assert";
import project from "../deno.json" with { type: "json" };
import { dirname, join } from "node:path";
import { fragmentsIn } from "./support/markdown.ts";
import { fromRoot } from "./support/paths.ts";
import { needing } from "./support/permissions.ts";

const test = needing("files");

/** Every page, by its path from the root. */
function pages(): Map<string, string> {
  const folders = [".", ".github", ...foldersIn("lib")];
  const paths = folders.flatMap((folder) =>
    [...Deno.readDirSync(fromRoot(folder))].filter(({ name }) => name.endsWith(".md"))
      .map(({ name }) => join(folder, name))
  );
  return new Map(paths.map((path) => [path, Deno.readTextFileSync(fromRoot(path))]));
}

/** A folder, and all that are below it. */
function foldersIn(folder: string): string[] {
  const below = [...Deno.readDirSync(fromRoot(folder))].filter(({ isDirectory }) => isDirectory);
  return [folder, ...below.flatMap(({ name }) => foldersIn(`${folder}/${name}`))];
}

test("every link between pages leads to a file, and to a heading in it", () => {
  const all = pages();
  const dead: string[] = [];
  let count = 0;
  for (const [path, page] of all) {
    for (const [, target = ""] of page.matchAll(/\]\(([^)]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      count++;
      const [file = "", fragment] = target.split("#");
      const to = file === "" ? path : join(dirname(path), file);
      const isThere = fragment === undefined
        ? exists(to)
        : fragmentsIn(all.get(to) ?? "").includes(fragment);
      if (!isThere) dead.push(`${path}: ${target}`);
    }
  }
  assertEquals(dead, []);
  assert(count > 15, `only ${count} links are seen`);
});

test("every file of the project that a page names is there", () => {
  const missing: string[] = [];
  let count = 0;
  for (const [path, page] of pages()) {
    for (const [, name = ""] of page.matchAll(/`((?:lib|tests|\.ci)\/[\w./-]+)`/g)) {
      count++;
      if (!exists(name)) missing.push(`${path}: ${name}`);
    }
  }
  assertEquals(missing, []);
  assert(count > 20, `only ${count} names are seen`);
});

test("the workflow runs the checks", () => {
  const workflow = Deno.readTextFileSync(fromRoot(".github/workflows/checks.yml"));
  assertMatch(workflow, /^ +- run: \.ci\/run$/m);
});

test("the recipe replaces every import of the unofficial package by the original", () => {
  const recipe = /```json\n(.*?),\n```/s.exec(pages().get("lib/README.md") ?? "")?.[1];
  const originals = Object.entries(project.imports)
    .filter(([, target]) => target.startsWith("npm:deno-std@"))
    .map(([name]) => [name, `jsr:${name.replace(/^@std\/[^/]+/, "$&@1")}`]);
  assertEquals(JSON.parse(`{${recipe}}`), Object.fromEntries(originals));
});

test("the top level holds what the card lists, and nothing else", () => {
  const names = [...Deno.readDirSync(fromRoot("."))].map(({ name }) => name)
    .filter((name) => !name.startsWith(".") && !isIgnored(name));
  assertEquals(names.toSorted(), [
    "LICENSE",
    "README.md",
    "deno.json",
    "deno.lock",
    "lib",
    "main.ts",
    "tests",
  ]);
});

test("git leaves out what the documents' commands make", () => {
  const lists = ["items.ndjson", "rejects.ndjson", "rejects.csv", "tokens.ndjson", "tokens.csv"];
  const made = [".env", "backup", "data", "episode-12.mp3", "report.html", ...lists];
  assertEquals(made.filter((name) => !isIgnored(name)), []);
});

/** Whether `.gitignore`, which `deno fmt` heeds, too, has a name at the top level. */
function isIgnored(name: string): boolean {
  const patterns = Deno.readTextFileSync(fromRoot(".gitignore")).matchAll(/^\/(.+?)\/?$/gm);
  return [...patterns].some(([, pattern = ""]) =>
    new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", ".*")}$`).test(name)
  );
}

function exists(path: string): boolean {
  try {
    Deno.statSync(fromRoot(path));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
