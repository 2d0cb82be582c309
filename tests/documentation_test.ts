/**
 * The pages of the documentation: that they lead somewhere, and that README stays short.
 */

import { assert, assertEquals } from "@std/assert";
import { dirname, join } from "node:path";
import { fromRoot } from "./support/paths.ts";
import { needing } from "./support/permissions.ts";

const test = needing("files");

/** Every page, by its path from the root. */
function pages(): Map<string, string> {
  const docs = [...Deno.readDirSync(fromRoot("docs"))].map(({ name }) => `docs/${name}`);
  const paths = ["README.md", "CHANGELOG.md", "lib/README.md", ...docs];
  return new Map(paths.map((path) => [path, Deno.readTextFileSync(fromRoot(path))]));
}

/** The fragments that lead to the headings of a page. */
function fragmentsIn(page: string): string[] {
  const headings = page.replaceAll(/^```.*?^```/gms, "").matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = ""]) =>
    heading.toLowerCase().replaceAll(/[^\w\s-]/g, "").replaceAll(" ", "-")
  );
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
    for (const [, name = ""] of page.matchAll(/`((?:lib|tests|docs|\.ci)\/[\w./-]+)`/g)) {
      count++;
      if (!exists(name)) missing.push(`${path}: ${name}`);
    }
  }
  assertEquals(missing, []);
  assert(count > 30, `only ${count} names are seen`);
});

test("README has at most 2,000 words", () => {
  const readme = Deno.readTextFileSync(fromRoot("README.md"));
  const words = readme.trim().split(/\s+/).length;
  assert(words <= 2_000, `${words} words`);
});

function exists(path: string): boolean {
  try {
    Deno.statSync(fromRoot(path));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
