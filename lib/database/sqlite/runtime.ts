/** What a SQLite database needs of the runtime. */

import type { DatabaseSync } from "node:sqlite";

export interface SqliteRuntime {
  readonly DatabaseSync: typeof DatabaseSync;
  /** Returns the identity of a file. Rejects with the code `ENOENT` if there is none. */
  stat(path: string): Promise<{ readonly dev: unknown; readonly ino: unknown }>;
  /** Resolves if the folder of a file is there, or was created. */
  ensureFolderOf(path: string): Promise<unknown>;
  /** Syncs the content of a file to disk. Rejects with the code `ENOENT` if there is none. */
  sync(path: string): Promise<void>;
}

/** Returns whether a call failed because there is no such file. */
export function isMissing(error: unknown): boolean {
  return Object(error).code === "ENOENT";
}
