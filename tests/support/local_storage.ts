/**
 * Local storage in a folder of its own, for one test.
 */

import { Files } from "../../lib/storage/files.ts";
import { openEngine } from "../../lib/storage/kv/engine.ts";
import { MediaStorage } from "../../lib/storage/media_storage.ts";
import type { PublishedItem } from "../../lib/storage/storage.ts";
import type { Subject } from "../storage/storage_suite.ts";

/** Opens the storage that a server keeps in a folder. */
export async function openIn(
  folder: string,
  kv = `${folder}/catalogue.sqlite`,
): Promise<MediaStorage> {
  return new MediaStorage(await openEngine(kv), new Files(`${folder}/files`));
}

/** Opens empty storage; disposing of it removes everything. */
export async function openLocal(
  kv = (folder: string) => `${folder}/catalogue.sqlite`,
): Promise<Subject & { readonly storage: MediaStorage; readonly folder: string }> {
  const folder = await Deno.makeTempDir({ prefix: "media-head-" });
  const storage = await openIn(folder, kv(folder));
  await storage.prepare();
  let isClosed = false;
  const close = storage.close.bind(storage);
  storage.close = () => {
    if (!isClosed) close();
    isClosed = true;
  };
  return {
    storage,
    folder,
    async publish(description, content) {
      await using staged = await storage.stage(once(content));
      return await storage.publish(description, staged);
    },
    async unpublish(token, at) {
      await storage.unpublish(token, at);
    },
    async damage({ digest }: PublishedItem, content) {
      const path = `${folder}/files/${digest.slice(0, 2)}/${digest}`;
      if (content === undefined) await Deno.remove(path);
      else await Deno.writeFile(path, content);
    },
    async [Symbol.asyncDispose]() {
      storage.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(content);
}
