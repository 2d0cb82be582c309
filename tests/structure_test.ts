/** The structure of the code: which folder uses which. */

import { assert, assertEquals } from "@std/assert";
import { dirname, join } from "node:path";
import { copyPackages } from "./support/copy.ts";
import { inFolder, taskArguments } from "./support/media_cli.ts";
import { fromRoot, SAMPLE_MP3 } from "./support/paths.ts";
import { needing } from "./support/permissions.ts";
import { mustRun } from "./support/run.ts";
import { ServerProcess, taskFlags } from "./support/server.ts";

/**
 * Every folder, by the map in `lib/README.md`. Each imports only from those that come before its own. A
 * module that stands above the rest of its folder has a place of its own.
 */
function foldersInOrder(): string[][] {
  const page = Deno.readTextFileSync(fromRoot("lib/README.md"));
  const [, map = ""] = /^## One direction\n(.*?)^## /ms.exec(page) ?? [];
  const rows = [...map.matchAll(/^- ((?:`[\w/.]+`(?:, )?)+):/gm)].map(([, names = ""]) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => `lib/${name}`)
  );
  return [...rows.toReversed(), ["."]];
}

/** What a module imports by statements of a form: paths from the root of this project, and packages. */
function importsBy(form: RegExp, path: string): string[] {
  const specifiers = Deno.readTextFileSync(fromRoot(path)).matchAll(form);
  return [...specifiers].map(([, specifier = ""]) =>
    specifier.startsWith(".") ? join(dirname(path), specifier) : specifier
  );
}

/** What a module imports of this project. */
const importsIn = (path: string) =>
  importsBy(/(?:^import |\bfrom |\bimport\()"(\.[^"]+\.ts)"/gm, path);

/** What a module loads as soon as it is loaded itself. */
const loadedBy = (path: string) =>
  importsBy(/^(?:import|export) (?!type\b)[^;]*? from "([^"]+)"/gm, path);

/** The modules that make up the server and the commands, and what each imports of them. */
function modules(): Map<string, string[]> {
  const imports = new Map([["main.ts", importsIn("main.ts")]]);
  const visit = (folder: string) => {
    for (const { name, isDirectory } of Deno.readDirSync(fromRoot(folder))) {
      const path = join(folder, name);
      if (isDirectory) visit(path);
      else if (name.endsWith(".ts") && !name.endsWith(".d.ts")) imports.set(path, importsIn(path));
    }
  };
  visit("lib");
  return imports;
}

needing("files")("each folder imports only from those below it", () => {
  const folders = foldersInOrder();
  const folderOf = (path: string) => folders.flat().includes(path) ? path : dirname(path);
  const rankOf = (path: string) => folders.findIndex((row) => row.includes(folderOf(path)));
  const upward: string[] = [];
  let count = 0;
  for (const [path, imported] of modules()) {
    assert(rankOf(path) >= 0, `${folderOf(path)} has no place among the folders`);
    for (const other of imported) {
      count++;
      const isBelow = rankOf(other) < rankOf(path);
      if (folderOf(other) !== folderOf(path) && !isBelow) upward.push(`${path} uses ${other}`);
    }
  }
  assertEquals(upward, []);
  assert(count > 200, `only ${count} imports are seen`);
  const all = new Set([...modules().keys()].map(folderOf));
  assertEquals(folders.flat().filter((folder) => !all.has(folder)), [], "these hold no module");
});

needing("files")(
  "one file knows the URL of SQLite, for all others that ask what a database is",
  () => {
    const reading = [...modules().keys()].filter((path) =>
      /[\^"]sqlite:["(]/i.test(Deno.readTextFileSync(fromRoot(path)))
    );
    assertEquals(reading, ["lib/database/place.ts"]);
  },
);

needing("files")("main.ts has functions of at most 45 lines", () => {
  const source = Deno.readTextFileSync(fromRoot("main.ts"));
  const functions = [...source.matchAll(/^(?:export )?(?:async )?function (\w+).*?^\}$/gms)]
    .map(([text, name = ""]) => [name, text.split("\n").length] as const);
  assert(functions.length > 15, `only ${functions.length} functions are seen`);
  assertEquals(functions.filter(([, length]) => length > 45), []);
});

needing("files")("main.ts makes one Response, and tells HEAD from GET at marked places", () => {
  const source = Deno.readTextFileSync(fromRoot("main.ts"));
  const code = source.replaceAll(/^ *(?:\/\*\*|\*|\/\/).*\n/gm, "");
  const count = (text: string) => code.split(text).length - 1;
  assertEquals(["new Response(", '"HEAD"', '"GET"'].map(count), [1, 1, 1]);
  const marks = [...source.matchAll(/^ *\/\/ (\(\d\)) /gm)].map(([, mark]) => mark);
  assertEquals(marks, ["(1)", "(2)", "(3)"]);
});

needing("files")("media and the record of calls know nothing of each other", () => {
  const rooms = ["lib/storage/", "lib/usage/"];
  const roomOf = (path: string) => rooms.find((room) => path.startsWith(room));
  const crossing = [...modules()].flatMap(([path, imported]) => {
    const [own, others] = [roomOf(path), imported.map(roomOf)];
    return own !== undefined && others.some((room) => room && room !== own) ? [path] : [];
  });
  assertEquals(crossing, []);
});

needing("files")("no file imports itself by way of others", () => {
  const rest = modules();
  for (let count = Infinity; rest.size < count;) {
    count = rest.size;
    for (const [path, imported] of rest) {
      if (!imported.some((other) => rest.has(other))) rest.delete(path);
    }
  }
  assertEquals([...rest.keys()], [], "these import each other in a circle, or files that do");
});

needing("files")("what a start imports needs no driver or command", () => {
  const loaded = new Set(["main.ts"]);
  for (const path of loaded) { // which grows on the way
    if (path.endsWith(".ts")) { for (const other of loadedBy(path)) loaded.add(other); }
  }
  const [modules, packages] = [true, false].map((isOurs) =>
    [...loaded].filter((path) => path.endsWith(".ts") === isOurs && path !== "deno.json")
  );
  assertEquals([...new Set(modules?.map((path) => dirname(path)))].toSorted(), [
    ".",
    "lib/async",
    "lib/database",
    "lib/database/sql",
    "lib/documents",
    "lib/errors",
    "lib/http",
    "lib/input",
    "lib/lifecycle",
    "lib/log",
    "lib/pages",
    "lib/server",
    "lib/storage",
    "lib/storage/engines",
    "lib/storage/media",
    "lib/usage/record",
  ]);
  assertEquals(packages?.toSorted(), [
    "@std/async/abortable",
    "@std/http/negotiation",
    "@std/uuid/v4",
    "node:path",
    "node:util",
    "quick-lru",
    "zod",
  ]);
});

needing("processes")(
  "a start, and a command by its task, need none of the tests' packages",
  () =>
    inFolder(async (folder) => {
      const needed = await copyPackages(`${folder}/npm`);
      // `deno task` downloads what is in deno.lock.
      const [locked, all] = ["deno.lock", "tests/deno.lock"].map((lock) =>
        new Set(Object.keys(JSON.parse(Deno.readTextFileSync(fromRoot(lock))).npm))
      ) as [Set<string>, Set<string>];
      assertEquals(locked, needed);
      assertEquals(locked.difference(all).size, 0);
      const flags = [...taskFlags(fromRoot("main.ts"), folder), "--frozen"];
      const environment = { DENO_DIR: folder, HTTPS_PROXY: "http://127.0.0.1:1" }; // no way out
      await using _server = await ServerProcess.start(environment, folder, { flags });

      const [DATABASE_URL, CONTENT] = [`sqlite:${folder}/a.sqlite`, `${folder}/files`];
      await mustRun(Deno.execPath(), taskArguments(["publish", SAMPLE_MP3]), {
        env: { ...environment, DATABASE_URL, CONTENT },
      });
    }),
);
