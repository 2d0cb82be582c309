/**
 * Storage in memory, for one test; needs no permissions.
 */

import { MediaStorage } from "../../lib/storage/media_storage.ts";
import { MemoryContent } from "../../lib/storage/memory/content.ts";
import { openEngine } from "../../lib/storage/memory/engine.ts";
import { type MediaSubject, subjectOn } from "./media_subject.ts";

/** Opens empty storage, with its database in memory, too. */
export function openMemory(engine = openEngine()): MediaSubject {
  const content = new MemoryContent();
  return subjectOn(new MediaStorage(engine, content), {
    damage({ digest }, bytes) {
      if (bytes === undefined) content.bytes.delete(digest);
      else content.bytes.set(digest, new Uint8Array(bytes));
      return Promise.resolve();
    },
    digests: () => Promise.resolve([...content.bytes.keys()]),
  });
}
