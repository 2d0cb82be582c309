import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { sqliteAt } from "../../../lib/database/place.ts";
import type { Schema } from "../../../lib/database/sql/schema.ts";
import { SqliteDatabase, type SqliteOptions } from "../../../lib/database/sqlite/database.ts";
import { DENO_RUNTIME } from "../../../lib/database/sqlite/deno_runtime.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { CATALOGUE } from "../../../lib/storage/catalogue/schema.ts";
import { openLedger } from "../../../lib/usage/record/open_ledger.ts";
import { mediaCommand, testsInFolder } from "../../support/media_cli.ts";

const [onFiles, asProcess] = [testsInFolder("files"), testsInFolder("processes")];

const OPTIONS: SqliteOptions = {
  schema: CATALOGUE,
  runtime: DENO_RUNTIME,
  synchronous: "FULL",
  timeout: 0,
};

/** Checks that a new catalogue is complete, and was created only once. */
function verify(path: string): void {
  using database = new DatabaseSync(path);
  const values = (sql: string) => database.prepare(sql).all().map((row) => Object.values(row)[0]);
  assertEquals(values("SELECT version FROM media_head_catalogue"), [0]);
  assertEquals(values("PRAGMA journal_mode"), ["wal"]);
  assertEquals(values("PRAGMA integrity_check"), ["ok"]);
}

asProcess("commands started simultaneously create one database", async (folder) => {
  const results = await Promise.all(
    [1, 2, 3, 4].map(() => mediaCommand(folder, ["import", "/dev/null"]).output()),
  );
  for (const { code } of results) assertEquals(code, 0);
  const said = await new Blob(results.map(({ stderr }) => stderr)).text();
  assertMatch(said, /^media: created the catalogue .*\n$/); // by one of them
  verify(`${folder}/catalogue.sqlite`);
});

/** The schema of a release some versions later or, if negative, earlier. */
function later(versions: number): Schema {
  return { ...CATALOGUE, version: CATALOGUE.version + versions };
}

function sql(path: string, statements: string): void {
  using database = new DatabaseSync(path);
  database.exec(statements);
}

/** What cannot be opened: how to make it, and the error. */
const OBSTACLES: [what: string, make: (path: string) => void | Promise<void>, cause: RegExp][] = [
  [
    "a database of another program",
    (path) => sql(path, "CREATE TABLE other (a)"),
    /^It is not a catalogue of media-head: choose another path, or move it away$/,
  ],
  [
    "a ledger",
    async (path) => {
      await (await openLedger(sqliteAt(path), { runtime: () => DENO_RUNTIME })).close();
    },
    /^It is not a catalogue of media-head: choose another path, or move it away$/,
  ],
  [
    "the catalogue of a later release",
    async (path) => {
      await (await SqliteDatabase.open(path, { ...OPTIONS, schema: later(1) })).close();
    },
    /^It has version 10 of the catalogue's schema, but this release supports only 9: run a later one$/,
  ],
  [
    "the catalogue of an earlier release",
    async (path) => {
      await (await SqliteDatabase.open(path, { ...OPTIONS, schema: later(-1) })).close();
    },
    /^It has version 8 .* supports only 9: export it with the earlier release, then import that into a new/,
  ],
  [
    "a file that is not a database",
    (path) => Deno.writeTextFile(path, "no database, and not a short text either"),
    /^file is not a database$/,
  ],
  ["a folder", (path) => Deno.mkdir(path), /^unable to open database file/],
  [
    "a folder that is a file",
    (path) => Deno.writeTextFile(path.replace(/\/[^/]*$/, ""), ""),
    /^(Not a directory|File exists|Cannot create a file)/i,
  ],
];

for (const [what, make, expected] of OBSTACLES) {
  onFiles(`SqliteDatabase.open() refuses ${what}, and does not change it`, async (folder) => {
    const path = `${folder}/below/c.sqlite`;
    if (what !== "a folder that is a file") await Deno.mkdir(`${folder}/below`);
    await make(path);
    const before = await contentOf(path);
    const opening = () => SqliteDatabase.open(path, OPTIONS);
    const { message, cause } = await assertRejects(opening, StorageError);
    assertEquals(
      message,
      `sqlite: the catalogue ${JSON.stringify(path)} (DATABASE_URL) cannot be opened`,
    );
    assertMatch((cause as Error).message, expected);
    assertEquals(await contentOf(path), before);
  });
}

async function contentOf(path: string): Promise<Uint8Array | undefined> {
  try {
    return await Deno.readFile(path);
  } catch {
    return undefined;
  }
}

onFiles(
  "SqliteDatabase uses no file that was removed or replaced, and leaves the newcomer's log alone",
  async (folder) => {
    for (const isReplaced of [false, true]) {
      const [path, other] = [`${folder}/${isReplaced}.sqlite`, `${folder}/other.sqlite`];
      const database = await SqliteDatabase.open(path, OPTIONS);
      const write = { text: "UPDATE media_head_catalogue SET version = 7" };
      await database.transact([write]);
      if (isReplaced) await (await SqliteDatabase.open(other, OPTIONS)).close();
      await (isReplaced ? Deno.rename(other, path) : Deno.remove(path));
      await Deno.writeTextFile(`${path}-wal`, "the newcomer's");
      const { cause } = await assertRejects(() => database.transact([write]), StorageError);
      assertMatch((cause as Error).message, /^The file was removed or replaced .*start again$/);
      await assertRejects(() => database.query(write), StorageError);
      await database.close();
      assertEquals(await Deno.readTextFile(`${path}-wal`), "the newcomer's");
      await Deno.remove(`${path}-wal`);
    }
  },
);
