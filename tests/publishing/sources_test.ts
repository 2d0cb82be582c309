import { assertEquals } from "@std/assert";
import { dirname, relative } from "node:path";
import { findSources } from "../../lib/publishing/sources.ts";
import { testsInFolder } from "../support/media_cli.ts";

const test = testsInFolder("environment", "files");

/** Returns what is found, with paths relative to a folder. */
async function find(folder: string, sources: string[], content?: string): Promise<string[]> {
  const storagePaths = content === undefined ? [] : [content];
  const short = (source: string) => source.startsWith("/") ? relative(folder, source) : source;
  const found = await Array.fromAsync(findSources(sources, storagePaths));
  return found.map((one) =>
    typeof one === "string" ? short(one) : `${one.outcome}: ${short(one.source)}`
  );
}

test("findSources() finds all files ordered by name, whatever the names", async (folder) => {
  const names = ["-x", "a b.mp3", "a/1", "a/b/2", "a/c", "b\nc", 'it\'s "q"', "z", "ü/🎧"];
  for (const name of names.toReversed()) {
    await Deno.mkdir(dirname(`${folder}/${name}`), { recursive: true });
    await Deno.writeTextFile(`${folder}/${name}`, "");
  }
  await Deno.mkdir(`${folder}/empty`);
  assertEquals(await find(folder, [folder]), names);
  assertEquals(await find(folder, [`${folder}/`]), names);
  // In the order given, and as often.
  const named = [`${folder}/z`, `${folder}/a`, `${folder}/z`];
  assertEquals(await find(folder, named), ["z", "a/1", "a/b/2", "a/c", "z"]);
});

test("findSources() leaves out hidden files and links, unless they are named", async (folder) => {
  await Deno.mkdir(`${folder}/m/.h`, { recursive: true });
  for (const name of ["a", ".b", ".h/c"]) await Deno.writeTextFile(`${folder}/m/${name}`, "");
  const links = { "x": "a", "up": "..", "self": "self", "none": "nowhere" };
  for (const [name, to] of Object.entries(links)) await Deno.symlink(to, `${folder}/m/${name}`);
  const found = await find(folder, [`${folder}/m`]);
  assertEquals(found.toSorted(), [
    "m/a",
    "omitted: m/.b",
    "omitted: m/.h",
    "omitted: m/none",
    "omitted: m/self",
    "omitted: m/up",
    "omitted: m/x",
  ]);
  const named = ["x", ".b", "none", "self"].map((name) => `${folder}/m/${name}`);
  assertEquals(await find(folder, named), ["m/x", "m/.b", "m/none", "m/self"]);
  assertEquals(await find(folder, [`${folder}/m/.h`]), ["m/.h/c"]);
  await Deno.symlink("m", `${folder}/l`);
  const through = await find(folder, [`${folder}/l`]);
  assertEquals(through.filter((path) => !/^omitted:/.test(path)), ["l/a"]);
});

test("findSources() never returns published content as sources, by any path", async (folder) => {
  await Deno.mkdir(`${folder}/data/files/ab`, { recursive: true });
  await Deno.mkdir(`${folder}/data/files2`);
  for (const name of ["files/ab/abcd", "files2/a", "b"]) {
    await Deno.writeTextFile(`${folder}/data/${name}`, "");
  }
  await Deno.symlink("data/files", `${folder}/link`);
  for (const content of [`${folder}/data/files`, `${folder}/link`, `${folder}/data/../link/`]) {
    assertEquals(
      await find(folder, [`${folder}/data`], content),
      ["data/b", "omitted: data/files", "data/files2/a"],
    );
    for (const source of ["data/files", "data/files/ab", "link"]) {
      const found = await find(folder, [`${folder}/${source}`], content);
      assertEquals(found, [`refused: ${source}`]);
    }
  }
  const all = ["data/b", "data/files/ab/abcd", "data/files2/a"];
  assertEquals(await find(folder, [`${folder}/data`]), all);
  assertEquals(await find(folder, [`${folder}/data`], `${folder}/not/there`), all);
});

test("findSources() reports a folder that cannot be read, and continues", async (folder) => {
  for (const name of ["a", "b", "c"]) {
    await Deno.mkdir(`${folder}/${name}`);
    await Deno.writeTextFile(`${folder}/${name}/x`, "");
  }
  const found: string[] = [];
  for await (const one of findSources([folder], [])) {
    found.push(typeof one === "string" ? relative(folder, one) : `${one.outcome} ${one.source}`);
    // Removed after its name was read.
    if (found.length === 1) await Deno.remove(`${folder}/b`, { recursive: true });
  }
  assertEquals(found, ["a/x", `refused ${folder}/b`, "c/x"]);
  assertEquals(
    await find(folder, ["https://h/a", "s3://b/c", `${folder}/none`]),
    ["https://h/a", "s3://b/c", "none"],
  );
});
