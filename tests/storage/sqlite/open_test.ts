import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { SqliteDatabase, type SqliteOptions } from "../../../lib/storage/sqlite/database.ts";
import { openEngine } from "../../../lib/storage/sqlite/engine.ts";
import { CATALOGUE, type Schema } from "../../../lib/storage/sqlite/schema.ts";
import { StorageError } from "../../../lib/storage/storage.ts";
import { inFolder, media } from "../../support/media_cli.ts";
import { needing } from "../../support/permissions.ts";
import type { OpenerTask } from "../../support/sqlite_opener.ts";

const [onFiles, asProcess] = [needing("files"), needing("processes")];

const OPTIONS: SqliteOptions = { schema: CATALOGUE, synchronous: "FULL", timeout: 0 };

/** Checks that a new catalogue is complete, and was created only once. */
function verify(path: string): void {
  using database = new DatabaseSync(path);
  const values = (sql: string) => database.prepare(sql).all().map((row) => Object.values(row)[0]);
  assertEquals(values("SELECT version FROM catalogue"), [0]);
  assertEquals(values("PRAGMA journal_mode"), ["wal"]);
  assertEquals(values("PRAGMA integrity_check"), ["ok"]);
}

onFiles(
  "SqliteDatabase.open() makes one database for many threads at once",
  () =>
    inFolder(async (folder) => {
      const threads = 4;
      const task: OpenerTask = {
        paths: Array.from({ length: 60 }, (_, index) => `${folder}/new/${index}/c.sqlite`),
        threads,
        arrivals: new Int32Array(new SharedArrayBuffer(4)),
      };
      const url = new URL("../../support/sqlite_opener.ts", import.meta.url);
      const faults = await Promise.all(Array.from({ length: threads }, () => {
        const worker = new Worker(url, { type: "module" });
        const { promise, resolve } = Promise.withResolvers<string[]>();
        worker.addEventListener("message", ({ data }) => {
          worker.terminate();
          resolve(data);
        }, { once: true });
        worker.postMessage(task);
        return promise;
      }));
      assertEquals(faults.flat(), []);
      for (const path of task.paths) verify(path);
    }),
);

asProcess(
  "commands started simultaneously create one database",
  () =>
    inFolder(async (folder) => {
      for (let round = 0; round < 3; round++) {
        const place = `${folder}/${round}`;
        const results = await Promise.all([1, 2, 3, 4, 5, 6].map(() => media(place, ["list"])));
        for (const { code, stderr } of results) assertEquals([code, stderr], [0, ""]);
        verify(`${place}/catalogue.sqlite`);
      }
    }),
);

/** The schema of a later release. */
function later(...steps: string[]): Schema {
  return { ...CATALOGUE, steps: [...CATALOGUE.steps, ...steps] };
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
    "a database that another program claims",
    (path) => sql(path, "PRAGMA application_id = 7"),
    /^It is not a catalogue of media-head: choose another path, or move it away$/,
  ],
  [
    "a ledger",
    async (path) => {
      await (await openEngine(`sqlite:${path}-x`)).close();
      await Deno.rename(`${path}-x-ledger`, path);
    },
    /^It is not a catalogue of media-head: choose another path, or move it away$/,
  ],
  [
    "the catalogue of a later release",
    async (path) => {
      const schema = later("ALTER TABLE item ADD COLUMN color TEXT", "CREATE TABLE more (a)");
      await (await SqliteDatabase.open(path, { ...OPTIONS, schema })).close();
    },
    /^It has version \d of the catalogue's schema, but this release supports \d at most: run a later one$/,
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
  onFiles(
    `SqliteDatabase.open() refuses ${what}, and does not change it`,
    () =>
      inFolder(async (folder) => {
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
      }),
  );
}

async function contentOf(path: string): Promise<Uint8Array | undefined> {
  try {
    return await Deno.readFile(path);
  } catch {
    return undefined;
  }
}

onFiles(
  "SqliteDatabase.open() moves an earlier schema forward, all steps or none",
  () =>
    inFolder(async (folder) => {
      const path = `${folder}/c.sqlite`;
      const open = (schema: Schema) => SqliteDatabase.open(path, { ...OPTIONS, schema });
      const first = await open(CATALOGUE);
      await first.transact([{ text: "UPDATE catalogue SET version = 7" }]);
      const steps = [
        "ALTER TABLE catalogue ADD COLUMN color TEXT",
        "UPDATE catalogue SET color = 'blue'",
      ];
      const broken = await assertRejects(() => open(later(...steps, "no SQL")), StorageError);
      assertMatch((broken.cause as Error).message, /syntax error/);
      const columns = await first.query({ text: "SELECT * FROM catalogue" });
      assertEquals({ ...columns[0] }, { only: 1, version: 7, content: null });

      const forward = await open(later(...steps));
      for (const database of [forward, await open(later(...steps))]) {
        assertEquals(database.get("SELECT version, color FROM catalogue"), [7, "blue"]);
        await database.close();
      }
      await first.close();
    }),
);

onFiles("SqliteDatabase opens a file again whatever its name is", () =>
  inFolder(async (folder) => {
    const path = `${folder}/50%25 of a?b#c ü/c.sqlite`;
    const database = await SqliteDatabase.open(path, OPTIONS);
    await Deno.utime(path, 1, 1); // changed from outside
    await database.transact([{ text: "UPDATE catalogue SET version = 7" }]);
    assertEquals(database.openings, 1);
    await database.close();
    using other = new DatabaseSync(path);
    assertEquals({ ...other.prepare("SELECT version FROM catalogue").get() }, { version: 7 });
  }));

onFiles(
  "SqliteDatabase writes nothing into a file that was replaced a moment ago",
  () =>
    inFolder(async (folder) => {
      const [path, other] = [`${folder}/c.sqlite`, `${folder}/other.sqlite`];
      const { close, catalogue } = await openEngine(`sqlite:${other}`);
      await catalogue.claimContent("other");
      await close();
      const database = await SqliteDatabase.open(path, OPTIONS);
      await database.query({ text: "SELECT version FROM catalogue" }); // it was opened just now
      Deno.renameSync(other, path);
      await database.transact([{ text: "UPDATE catalogue SET version = 7" }]);
      using reader = new DatabaseSync(path);
      const row = { ...reader.prepare("SELECT version, content FROM catalogue").get() };
      assertEquals(row, { version: 7, content: "other" });
      await database.close();
    }),
);
