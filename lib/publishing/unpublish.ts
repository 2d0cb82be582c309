/** Unpublishing items. */

import { StorageError } from "../errors/storage_error.ts";
import { messageOf, quoted } from "../input/printable.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import type { Token } from "../storage/token.ts";

/** The result of unpublishing an item. */
interface Unpublishing {
  /** Whether the item was published until now. */
  readonly isNew: boolean;
  /** The files that earlier changes had left in the folder; they are deleted now. */
  readonly deleted: readonly string[];
}

/** Callbacks for what happens to content. */
export interface UnpublishOptions {
  /** Called with what happens to an object of the bucket whose item is unpublished. */
  readonly onMessage: (text: string) => void;
  /** Called with each file that could not be deleted after an item was unpublished, and why. */
  readonly onLeft: (text: string) => void;
}

/**
 * Unpublishes an item.
 *
 * - Content in a folder is deleted, unless another item uses it. If the item is unpublished already,
 *   everything that earlier changes have left there is deleted. What cannot be is reported.
 * - An object of the bucket stays. It is reported before the commit, because the tombstone does not
 *   name it, and again afterwards, to say whether another item uses it.
 *
 * @param at Milliseconds since the epoch.
 * @throws {StorageError} When storage fails before the item is unpublished.
 */
export async function unpublish(
  storage: MediaStorage,
  token: Token,
  at: number,
  { onMessage, onLeft }: UnpublishOptions,
): Promise<Unpublishing> {
  const { catalogue, content } = storage;
  const found = await catalogue.find(token);
  if (content.kind === "bucket" && found.state === "published") {
    const { digest, location } = found.item;
    const object = content.locationOf(found.item);
    onMessage(`unpublishing ${token}, whose content is ${object}`);
    const isNew = await storage.unpublish(token, at);
    const isUsed = await catalogue.uses(digest, location);
    onMessage(`${isUsed ? "another" : "no"} item uses ${object}`);
    return { isNew, deleted: [] };
  }
  const isNew = await storage.unpublish(token, at);
  const isStored = found.state === "published" && found.item.location === undefined;
  if (!isStored && found.state !== "unpublished") return { isNew, deleted: [] };
  const digest = isStored ? found.item.digest : undefined; // a tombstone has none
  const deleted = await deleteLeftovers(storage, digest, (fault) => {
    onLeft(`${token} is unpublished, but ${fault}; once this is fixed, unpublish it again`);
  });
  return { isNew, deleted };
}

/**
 * Deletes what changes have left in the folder. A failure is reported, because the changes are made
 * all the same.
 *
 * @returns The files that are deleted.
 */
async function deleteLeftovers(
  storage: MediaStorage,
  digest: string | undefined,
  onFault: (fault: string) => void,
): Promise<string[]> {
  const deleted: string[] = [];
  try {
    for (const { path, cause } of await storage.deleteLeftovers(digest)) {
      if (cause === undefined) deleted.push(path);
      else onFault(messageOf({ message: `${quoted(path)} cannot be deleted`, cause }));
    }
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
    onFault(`content may be left in the folder: ${messageOf(error)}`);
  }
  return deleted;
}
