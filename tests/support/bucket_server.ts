/** A server on a bucket, with caches, and without a socket. */

import { CachedStorage } from "../../lib/storage/cache.ts";
import { BucketContent } from "../../lib/storage/content/bucket/content.ts";
import type { BucketSettings } from "../../lib/storage/content/content_place.ts";
import { storageOn } from "../../lib/storage/engines/open_storage.ts";
import type { PublishedItem } from "../../lib/storage/item.ts";
import type { MediaStorage } from "../../lib/storage/media/media_storage.ts";
import { CONFIG } from "../server/request_table.ts";
import { newMetadata } from "../storage/storage_suite.ts";
import { servedHandler } from "./handlers.ts";
import { openMemoryEngine } from "./memory_storage.ts";
import type { ScriptedStore } from "./scripted_store.ts";

/** Returns a server on storage, with its own caches. */
export function serverOn(storage: MediaStorage, clock: { readonly now: number }) {
  const cached = new CachedStorage(storage, storage.catalogue, () => clock.now);
  const options = { storage: cached, config: CONFIG, clock: () => clock.now, log() {} };
  const handle = servedHandler(options);
  const send = async (
    method: "HEAD" | "GET",
    { token, length }: Pick<PublishedItem, "token" | "length">,
  ) => {
    const response = await handle(new Request(`http://test/media/${token}`, { method }));
    const { status, headers } = response;
    const content = await response.bytes();
    const isCutOff = method === "GET" && status === 200 && content.length < length;
    return { status, isCutOff, answer: [status, ...headers] };
  };
  return { cached, send };
}

/** Opens storage on a store that follows a script, with items whose objects it has. */
export async function openScripted(
  fake: ScriptedStore,
  references: readonly Pick<PublishedItem, "length" | "location" | "validator">[],
  settings: Partial<BucketSettings> = {},
) {
  const engine = await openMemoryEngine();
  const content = new BucketContent({ ...fake.settings, ...settings });
  const { media: storage, close } = storageOn(engine, content);
  const items = references.map((reference, index): PublishedItem => ({
    ...newMetadata(),
    ...reference,
    digest: index.toString(16).padStart(64, "0"),
  }));
  await engine.catalogue.addAll(
    items.map((item) => [item.token, { state: "published", kind: item.kind, item }]),
  );
  return { storage, items, close };
}
