/** Unpublishing items. */

import type { MediaStorage } from "../storage/media/media_storage.ts";
import type { Token } from "../storage/token.ts";

/**
 * Unpublishes an item. An object of the bucket stays. It is reported before the commit, because the
 * tombstone does not name it, and again afterwards, to say whether another item uses it.
 *
 * @param at Milliseconds since the epoch.
 * @returns Whether the item was published until now.
 * @throws {StorageError} When storage fails.
 */
export async function unpublish(
  storage: MediaStorage,
  token: Token,
  at: number,
  report: (text: string) => void,
): Promise<boolean> {
  const { catalogue, content } = storage;
  const found = await catalogue.find(token);
  if (content.kind !== "bucket" || found.state !== "published") {
    return await storage.unpublish(token, at);
  }
  const { digest, location } = found.item;
  const object = content.locationOf(found.item);
  report(`unpublishing ${token}, whose content is ${object}`);
  const isNew = await storage.unpublish(token, at);
  const isUsed = await catalogue.uses(digest, location);
  report(`${isUsed ? "another" : "no"} item uses ${object}`);
  return isNew;
}
