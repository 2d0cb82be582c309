/** Storage into which a test publishes. */

import { hashOf } from "../../lib/publishing/publish.ts";
import type { OpenStorage } from "../../lib/storage/engines/open_storage.ts";
import type { PublishedItem } from "../../lib/storage/item.ts";
import type { MediaStorage } from "../../lib/storage/media/media_storage.ts";
import type { ItemMetadata, Subject } from "../storage/storage_suite.ts";
import { sourceOf } from "./body.ts";

/** Storage, with functions that change and show what it holds. */
export interface MediaSubject extends Subject {
  readonly storage: MediaStorage;
  /** Returns the digests of stored content. */
  digests(): Promise<string[]>;
}

/** Publishes content. */
export async function publishTo(
  storage: MediaStorage,
  metadata: ItemMetadata,
  content: Uint8Array,
  reuse = false,
): Promise<PublishedItem> {
  const source = sourceOf(content);
  const item = { ...metadata, ...await hashOf(source.read("hashing")) };
  return await storage.publish(item, source, reuse);
}

/**
 * Makes a subject of storage. Disposing of it closes the storage if the test has not.
 *
 * @param place Functions that damage, list and remove content.
 */
export function subjectOn(
  { media: storage, close: closeAll }: OpenStorage,
  place: Pick<MediaSubject, "damage" | "digests" | "replaced"> & { remove?(): Promise<void> },
): MediaSubject {
  let isOpen = true;
  const close = async () => {
    if (isOpen) await closeAll();
    isOpen = false;
  };
  return {
    storage,
    close,
    publish: (metadata, content) => publishTo(storage, metadata, content),
    async unpublish(token, at) {
      await storage.unpublish(token, at);
    },
    ...place,
    async [Symbol.asyncDispose]() {
      await close();
      await place.remove?.();
    },
  };
}
