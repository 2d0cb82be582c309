/** Deno, for a SQLite database. `node:fs/promises` would add 15 ms to the start. */

import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { ignoreMissing, type SqliteRuntime } from "./runtime.ts";

export const DENO_RUNTIME: SqliteRuntime = {
  DatabaseSync,
  stat: (path) => Deno.stat(path),
  ensureFolderOf: (path) => Deno.mkdir(dirname(path), { recursive: true }),
  async copyAside(files) {
    const path = await Deno.makeTempDir();
    const remove = () => Deno.remove(path, { recursive: true });
    try {
      for (const file of files) {
        await Deno.copyFile(file, join(path, basename(file))).catch(ignoreMissing);
      }
      return { path, remove };
    } catch (error) {
      await remove();
      throw error;
    }
  },
  async sync(path) {
    const file = await Deno.open(path, { write: true });
    await file.syncData().finally(() => file.close());
  },
};
