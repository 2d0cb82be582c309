/**
 * Storage in memory, for one test: it needs no permission.
 */

import { MediaStorage } from "../../lib/storage/media_storage.ts";
import { MemoryContent } from "../../lib/storage/memory/content.ts";
import { openEngine } from "../../lib/storage/memory/engine.ts";
import type { Subject } from "../storage/storage_suite.ts";

/** Opens empty storage. */
export function openMemory(): Subject & { readonly storage: MediaStorage } {
  const content = new MemoryContent();
  const storage = new MediaStorage(openEngine(), content);
  return {
    storage,
    async publish(description, bytes) {
      await using staged = await storage.stage(once(bytes));
      return await storage.publish(description, staged);
    },
    async unpublish(token, at) {
      await storage.unpublish(token, at);
    },
    damage({ digest }, bytes) {
      if (bytes === undefined) content.bytes.delete(digest);
      else content.bytes.set(digest, new Uint8Array(bytes));
      return Promise.resolve();
    },
    [Symbol.asyncDispose]() {
      storage.close();
      return Promise.resolve();
    },
  };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}
