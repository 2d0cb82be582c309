/**
 * Storage that a test publishes into.
 */

import type { MediaStorage } from "../../lib/storage/media_storage.ts";
import type { Subject } from "../storage/storage_suite.ts";

/** Both halves of storage, and what changes and shows what they hold. */
export interface MediaSubject extends Subject {
  readonly storage: MediaStorage;
  /** The digests of the content that is stored. */
  digests(): Promise<string[]>;
}

/**
 * Makes a subject of storage; disposing of it closes the storage, unless the test has.
 *
 * @param place What is done where content is: damage it, list it, and remove it all.
 */
export function subjectOn(
  storage: MediaStorage,
  place: Pick<MediaSubject, "damage" | "digests" | "replaced"> & { remove?(): Promise<void> },
): MediaSubject {
  let isOpen = true;
  const close = storage.close.bind(storage);
  storage.close = async () => {
    if (isOpen) await close();
    isOpen = false;
  };
  return {
    storage,
    async publish(metadata, content) {
      await using staged = await storage.stage({ read: () => once(content) });
      return await storage.publish(metadata, staged);
    },
    async unpublish(token, at) {
      await storage.unpublish(token, at);
    },
    ...place,
    async [Symbol.asyncDispose]() {
      await storage.close();
      await place.remove?.();
    },
  };
}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(content);
}
