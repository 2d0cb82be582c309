/**
 * The structure of the code: which folder uses which, and what can be left out.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { dirname, join } from "node:path";
import { fromRoot } from "./support/paths.ts";
import { needing } from "./support/permissions.ts";
import { field, requestRaw } from "./support/raw_http.ts";
import { ServerProcess } from "./support/server.ts";

/** Every folder, each of which uses only those in lines before its own. */
const ROOMS = [
  ["lib/http"],
  ["lib/lifecycle"],
  ["lib/storage"],
  ["lib/storage/memory"],
  ["lib/server"], // so far the core
  ["lib/storage/sql", "lib/usage", "lib/documents", "lib/publishing/tracks"],
  ["lib/storage/sqlite", "lib/storage/postgres", "lib/storage/bucket"],
  ["lib/publishing"],
  ["lib/cli"],
  ["."],
];

/** The rooms that can be left out. */
const OPTIONAL = [
  "lib/storage/sqlite",
  "lib/storage/postgres",
  "lib/storage/bucket",
  "lib/usage",
  "lib/documents",
  "lib/publishing",
  "lib/cli",
];

/** What a module imports of this project: paths from its root. */
function importsIn(path: string): string[] {
  const specifiers = Deno.readTextFileSync(fromRoot(path))
    .matchAll(/(?:^import |\bfrom |\bimport\()"(\.[^"]+\.ts)"/gm);
  return [...specifiers].map(([, specifier = ""]) => join(dirname(path), specifier));
}

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

/** A test, and all the other files of tests that it needs. */
function withImports(test: string): Set<string> {
  const files = new Set([test]);
  for (const file of files) { // which grows on the way
    for (const path of importsIn(file)) if (path.startsWith("tests/")) files.add(path);
  }
  return files;
}

needing("files")("each folder uses only folders below it", () => {
  const rankOf = (path: string) => ROOMS.findIndex((rooms) => rooms.includes(dirname(path)));
  const upward: string[] = [];
  let count = 0;
  for (const [path, imported] of modules()) {
    assert(rankOf(path) >= 0, `${dirname(path)} has no place among the rooms`);
    for (const other of imported) {
      count++;
      const isBelow = rankOf(other) < rankOf(path);
      if (dirname(other) !== dirname(path) && !isBelow) upward.push(`${path} uses ${other}`);
    }
  }
  assertEquals(upward, []);
  assert(count > 200, `only ${count} imports are seen`);
});

/** A copy of the project without some rooms, and without those that use them. */
async function copyWithout(rooms: readonly string[], folder: string): Promise<void> {
  const root = fromRoot(".");
  const imports = modules();
  const isIn = (room: string, path: string) => path.startsWith(`${room}/`);
  const out = new Set(rooms);
  for (let size = 0; size < out.size;) {
    size = out.size;
    for (const [path, imported] of imports) {
      const room = OPTIONAL.find((room) => isIn(room, path));
      const isUser = imported.some((other) => [...out].some((gone) => isIn(gone, other)));
      if (room !== undefined && isUser) out.add(room);
    }
  }
  const isOut = (path: string) => [...out].some((room) => isIn(room, path) || room === path);
  const copy = async (path: string) => {
    await Deno.mkdir(join(folder, dirname(path)), { recursive: true });
    await Deno.copyFile(join(root, path), join(folder, path));
  };
  const copyFolder = async (path: string) => {
    for await (const { name, isDirectory } of Deno.readDir(join(root, path))) {
      const entry = join(path, name);
      if (isOut(entry)) continue;
      await (isDirectory ? copyFolder(entry) : copy(entry));
    }
  };
  await copyFolder("lib");
  for (const file of ["deno.json", "deno.lock", ...withImports(TABLE)]) await copy(file);
  const lines = (await Deno.readTextFile(join(root, "main.ts"))).split("\n");
  const left = lines.filter((line) => ![...out].some((room) => line.includes(`"./${room}/`)));
  assertEquals(lines.length - left.length, out.size, "each room is one line");
  await Deno.writeTextFile(join(folder, "main.ts"), left.join("\n"));
}

/** The request table on the bare handler. */
const TABLE = "tests/server/request_table_test.ts";

for (const rooms of [...OPTIONAL.map((room) => [room]), OPTIONAL]) {
  const name = rooms.length === 1 ? rooms[0] : "all that is optional";
  needing("processes")(
    `without ${name} the rest type-checks, starts and passes the request table`,
    async () => {
      const folder = await Deno.makeTempDir({ prefix: "media-head-" });
      try {
        await copyWithout(rooms, folder);
        const deno = (...args: string[]) =>
          new Deno.Command(Deno.execPath(), {
            args,
            cwd: folder,
            env: { NO_COLOR: "1", HOST: "127.0.0.1", PORT: "0" },
          });
        const checked = await deno("check", "main.ts", "lib").output();
        assert(checked.success, new TextDecoder().decode(checked.stderr));
        const table = await deno("test", "--no-check", "tests/server/request_table_test.ts")
          .output();
        assertMatch(
          new TextDecoder().decode(table.stdout),
          /ok \| 1 passed \(\d{3} steps\) \| 0 failed/,
        );

        await using server = await ServerProcess.start({}, folder, {
          main: join(folder, "main.ts"),
        });
        const head = (path: string) => requestRaw(server.port, "HEAD", path);
        assertEquals((await head("/healthz")).status, 200);
        const refused = await head("/audio/x");
        assertEquals([refused.status, field(refused, "deprecation")], [400, "@1795219200"]);
        const { status } = await head("/deprecation");
        assertEquals(status, rooms.includes("lib/documents") ? 404 : 200);
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  );
}
