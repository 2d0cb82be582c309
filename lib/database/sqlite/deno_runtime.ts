/** Deno, for a SQLite database. `node:fs/promises` would add 15 ms to the start. */

import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SqliteRuntime } from "./runtime.ts";

export const DENO_RUNTIME: SqliteRuntime = {
  DatabaseSync,
  stat: (path) => Deno.stat(path),
  ensureFolderOf: (path) => Deno.mkdir(dirname(path), { recursive: true }),
  async sync(path) {
    const file = await Deno.open(path, { write: true });
    await file.syncData().finally(() => file.close());
  },
};
