/**
 * SQLite on Node and Bun. Its modules are not imported, because bundlers rename `node:sqlite`,
 * and give an ES module no `require`.
 */

import { RefusedError } from "../../errors/refused_error.ts";
import { quoted } from "../../input/printable.ts";
import { ignoreMissing, isMissing, type SqliteRuntime } from "./runtime.ts";

/** @throws {RefusedError} If this runtime has no SQLite. */
export function nodeRuntime(): SqliteRuntime {
  const { getBuiltinModule, version, versions: { bun } } = globalThis.process;
  const sqlite = getBuiltinModule?.("node:sqlite");
  if (sqlite === undefined) {
    const runtime = bun === undefined ? `Node ${version}` : `Bun ${bun}`;
    throw new RefusedError(
      `SQLite needs the module node:sqlite, which is missing here (${runtime}): use Node 22.13 or ` +
        "later without --no-experimental-sqlite, Bun 1.4 or later, or Deno",
    );
  }
  const { fdatasync, promises: { copyFile, mkdtemp, open, rm, stat } } = getBuiltinModule(
    "node:fs",
  );
  const { promisify } = getBuiltinModule("node:util");
  const { basename, dirname, join } = getBuiltinModule("node:path");
  const { tmpdir } = getBuiltinModule("node:os");
  return {
    DatabaseSync: sqlite.DatabaseSync,
    stat: (path) => stat(path, { bigint: true }),
    async ensureFolderOf(path) {
      const folder = dirname(path); // not created, because the path may be mistyped
      await stat(folder).catch((error) => {
        if (!isMissing(error)) throw error;
        throw new Error(
          `The folder ${quoted(folder)} does not exist; correct the path or create it`,
        );
      });
    },
    async copyAside(files) {
      const path = await mkdtemp(join(tmpdir(), "media-head-"));
      const remove = () => rm(path, { recursive: true });
      try {
        for (const file of files) {
          await copyFile(file, join(path, basename(file))).catch(ignoreMissing);
        }
        return { path, remove };
      } catch (error) {
        await remove();
        throw error;
      }
    },
    async sync(path) {
      const file = await open(path, "r+");
      try {
        await promisify(fdatasync)(file.fd); // Yarn Plug'n'Play has no `file.datasync()`
      } finally {
        await file.close();
      }
    },
  };
}
