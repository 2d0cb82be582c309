/** What a SQLite database needs of the runtime. */

import type { DatabaseSync } from "node:sqlite";

/** A file's identity, and what changes with its content. */
interface FileFacts {
  readonly dev: unknown;
  readonly ino: unknown;
  readonly size: number | bigint;
  readonly mtime: Date | null;
}

export interface SqliteRuntime {
  readonly DatabaseSync: typeof DatabaseSync;
  /** Returns the facts of a file. Rejects with the code `ENOENT` if there is none. */
  stat(path: string): Promise<FileFacts>;
  /** Resolves if the folder of a file is there, or was created. */
  ensureFolderOf(path: string): Promise<unknown>;
  /** Copies files, as far as they are there, into a temporary folder, under their own names. */
  copyAside(files: readonly string[]): Promise<TemporaryFolder>;
  /** Syncs the content of a file to disk. Rejects with the code `ENOENT` if there is none. */
  sync(path: string): Promise<void>;
}

/** A folder that is removed after use. */
export interface TemporaryFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/** Returns whether a call failed because there is no such file. */
export function isMissing(error: unknown): boolean {
  return Object(error).code === "ENOENT";
}

/** Ignores that there is no such file, and no other error. */
export function ignoreMissing(error: unknown): void {
  if (!isMissing(error)) throw error;
}
