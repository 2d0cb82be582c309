/**
 * Reads a file with a log (WAL) from a copy. SQLite needs an index beside it, which it cannot make
 * where nothing may be written, and would change a file that nobody uses.
 */

import type { SqliteRuntime, TemporaryFolder } from "./runtime.ts";

/** A copy of a file and its log, in a folder of its own. */
interface Copy extends Pick<TemporaryFolder, "remove"> {
  readonly path: string;
}

export async function isThere(path: string, runtime: SqliteRuntime): Promise<boolean> {
  return await runtime.stat(path).then(() => true, () => false);
}

/** @throws {Error} If the file changes meanwhile. */
export async function copyAside(path: string, runtime: SqliteRuntime): Promise<Copy> {
  const files = [path, `${path}-wal`];
  const stateOf = async () => {
    const states = files.map(async (file) => {
      const { size, mtime } = await runtime.stat(file).catch(() => ({ size: 0, mtime: null }));
      return [Number(size), mtime];
    });
    return JSON.stringify(await Promise.all(states));
  };
  const before = await stateOf();
  const { path: folder, remove } = await runtime.copyAside(files);
  if (before === await stateOf()) {
    return { path: `${folder}/${path.slice(path.lastIndexOf("/") + 1)}`, remove };
  }
  await remove();
  throw new Error("It changes while it is copied to be read; expected one that nobody writes to");
}

/** SQLite's primary result codes for a file, or an index of its log, that cannot be written. */
const UNWRITABLE = [8, 14];

/** Returns whether reading failed because nothing may be written. */
export function needsWriting(error: unknown): boolean {
  return UNWRITABLE.includes(Object(error).errcode & 0xff);
}
