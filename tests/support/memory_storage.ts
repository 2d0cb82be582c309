/** Storage in memory, for one test; needs no permissions. */

import { IN_MEMORY } from "../../lib/database/place.ts";
import type { Engine } from "../../lib/storage/engines/engine.ts";
import { storageOn } from "../../lib/storage/engines/open_storage.ts";
import { openEngine } from "../../lib/storage/engines/sqlite.ts";
import { type MediaSubject, subjectOn } from "./media_subject.ts";
import { MemoryContent } from "./memory_content.ts";

/** Opens an empty database in memory. */
export async function openMemoryEngine(): Promise<Engine & AsyncDisposable> {
  const engine = await openEngine(IN_MEMORY);
  return { ...engine, [Symbol.asyncDispose]: engine.close };
}

/** Opens empty storage, with its database in memory, too. */
export async function openMemory(engine?: Engine): Promise<MediaSubject> {
  const database = engine ?? await openMemoryEngine();
  const content = new MemoryContent(database.catalogue);
  return subjectOn(storageOn(database, content), {
    damage({ digest }, bytes) {
      if (bytes === undefined) content.bytes.delete(digest);
      else content.bytes.set(digest, new Uint8Array(bytes));
      return Promise.resolve();
    },
    digests: () => Promise.resolve([...content.bytes.keys()]),
  });
}
