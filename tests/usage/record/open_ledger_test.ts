/** Ledgers in files that are only read. */

import { assertEquals, assertRejects } from "@std/assert";
import { basename } from "node:path";
import { sqliteAt } from "../../../lib/database/place.ts";
import { DENO_RUNTIME } from "../../../lib/database/sqlite/deno_runtime.ts";
import { nodeRuntime } from "../../../lib/database/sqlite/node_runtime.ts";
import type { SqliteRuntime } from "../../../lib/database/sqlite/runtime.ts";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { messageOf } from "../../../lib/input/printable.ts";
import { openLedger, openLedgerToRead } from "../../../lib/usage/record/open_ledger.ts";
import { begin } from "../../support/ledger_rows.ts";
import { inFolder } from "../../support/media_cli.ts";
import { needing } from "../../support/permissions.ts";
import { DISK, SmallDisk } from "../../support/small_disk.ts";

const test = needing(...DISK);

/** Which files of a ledger that a process has open are there: the index means that one has. */
const STATES = [
  ["that is closed", [""]],
  ["with a log, as in a backup", ["", "-wal"]],
  ["that a process has open", ["", "-wal", "-shm"]],
] as const;

/** Makes such a ledger in a folder, with two sessions, and runs an action. */
async function inState(
  ends: readonly string[],
  folder: string,
  action: (path: string) => Promise<void>,
): Promise<void> {
  const path = `${folder}/ledger.sqlite`;
  await inFolder(async (elsewhere) => {
    const original = `${elsewhere}/${basename(path)}`;
    const opened = await openLedger(sqliteAt(original), { runtime: () => DENO_RUNTIME });
    for (const _ of [1, 2]) await begin(opened.ledger);
    if (ends.length === 1) await opened.close();
    for (const end of ends) await Deno.copyFile(original + end, path + end);
    await action(path);
    if (ends.length > 1) await opened.close();
  });
}

/** Returns the content of every file in a folder but of an index, which changes with every reader. */
async function contentOf(folder: string): Promise<Map<string, Uint8Array>> {
  const names = (await Array.fromAsync(Deno.readDir(folder), ({ name }) => name)).sort();
  const files = names.map(async (name) => {
    const bytes = name.endsWith("-shm")
      ? new Uint8Array()
      : await Deno.readFile(`${folder}/${name}`);
    return [name, bytes] as const;
  });
  return new Map(await Promise.all(files));
}

/** Returns a runtime that notes where it copies files, and does something after that. */
function watched(runtime: SqliteRuntime, copies: string[], then = () => Promise.resolve()) {
  return {
    ...runtime,
    async copyAside(files: readonly string[]) {
      const copy = await runtime.copyAside(files);
      copies.push(copy.path);
      await then();
      return copy;
    },
  };
}

for (const [of, runtime] of [["Deno", () => DENO_RUNTIME], ["Node", nodeRuntime]] as const) {
  test(`on ${of}, a ledger is read whole, and nothing of it changes`, async () => {
    for (const [what, ends] of STATES) {
      for (const isReadOnly of [false, true]) {
        await using disk = await SmallDisk.mount(500);
        await inState(ends, disk.folder, async (path) => {
          if (isReadOnly) await disk.makeReadOnly();
          const before = await contentOf(disk.folder);
          const copies: string[] = [];
          const options = { runtime: () => watched(runtime(), copies) };
          const { ledger, close } = await openLedgerToRead(sqliteAt(path), options);
          const note = `${what}, ${isReadOnly ? "read-only" : "writable"}`;
          assertEquals((await ledger.sessions()).length, 2, note);
          await close();
          assertEquals(await contentOf(disk.folder), before, note);
          // Where nothing may be written, SQLite cannot even make an index.
          const isCopied = ends.length === 2 || ends.length === 1 && isReadOnly;
          assertEquals(copies.length, Number(isCopied), note);
          for (const copy of copies) {
            await assertRejects(() => Deno.stat(copy), Deno.errors.NotFound);
          }
        });
      }
    }
  });
}

needing("files")(
  "a ledger that changes while it is copied is refused, and so is another file, by its own name",
  () =>
    inFolder((folder) =>
      inState(["", "-wal"], folder, async (path) => {
        const copies: string[] = [];
        const change = () => Deno.writeTextFile(path, "x", { append: true });
        const runtime = () => watched(DENO_RUNTIME, copies, change);
        const reading = () => openLedgerToRead(sqliteAt(path), { runtime });
        const name = `sqlite: the ledger "${path}" (DATABASE_URL) cannot be opened`;
        assertEquals(
          messageOf(await assertRejects(reading, StorageError)),
          `${name} (It changes while it is copied to be read; expected one that nobody writes to)`,
        );
        await Deno.writeTextFile(path, "no database, and not a short text either");
        const other = () =>
          openLedgerToRead(sqliteAt(path), { runtime: () => watched(DENO_RUNTIME, copies) });
        assertEquals(
          messageOf(await assertRejects(other, StorageError)),
          `${name} (file is not a database)`,
        );
        assertEquals(copies.length, 2);
        for (const copy of copies) await assertRejects(() => Deno.stat(copy), Deno.errors.NotFound);
      })
    ),
);
