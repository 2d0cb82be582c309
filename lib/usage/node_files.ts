/** The calls of the file system on Node, for a ledger in SQLite. */

import { mkdir, open, stat } from "node:fs/promises";
import type { FileCalls } from "../database/sqlite/files.ts";

export const NODE_FILES: FileCalls = {
  stat: (path) => stat(path, { bigint: true }),
  mkdir: (path) => mkdir(path, { recursive: true }),
  async sync(path) {
    const file = await open(path, "r+");
    try {
      await file.datasync();
    } finally {
      await file.close();
    }
  },
};
