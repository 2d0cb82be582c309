/** Publishing many sources in sequence. */

import { RefusedError } from "../errors/refused_error.ts";
import type { LinkedItem, PublishedItem } from "../storage/item.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { newToken } from "../storage/token.ts";
import { isPublicUrl } from "./location.ts";
import { publishFile, type PublishOptions } from "./publish.ts";
import { isObject, publishObject, refusalOfObject } from "./publish_object.ts";
import { publishUrl, type PublishUrlOptions } from "./publish_url.ts";
import { findSources, type SourceOutcome } from "./sources.ts";

interface PublishAllOptions extends PublishOptions, Pick<PublishUrlOptions, "warn"> {
  /** The files and folders of storage. They are not published. */
  readonly storagePaths: readonly string[];
}

export type PublishOutcome =
  | {
    /** Skipped: an item with the same content and name is already published. */
    readonly outcome: "published" | "skipped";
    readonly source: string;
    readonly item: PublishedItem | LinkedItem;
  }
  | SourceOutcome;

/**
 * Publishes files, the files of folders, public URLs and objects of the bucket.
 *
 * @returns Each outcome, as soon as it is known.
 * @throws {StorageError} When storage fails. Outcomes already yielded remain valid.
 */
export async function* publishAll(
  storage: MediaStorage,
  sources: Iterable<string>,
  options: PublishAllOptions,
): AsyncGenerator<PublishOutcome> {
  for await (const found of findSources(sources, options.storagePaths)) {
    options.signal?.throwIfAborted();
    yield typeof found === "string" ? await publishOne(storage, found, options) : found;
  }
}

async function publishOne(
  storage: MediaStorage,
  source: string,
  { token = newToken(), ...options }: PublishAllOptions,
): Promise<PublishOutcome> {
  const publish = isPublicUrl(source) ? publishUrl : isObject(source) ? publishObject : publishFile;
  try {
    const item = await publish(storage, source, { ...options, token });
    return { outcome: item.token === token ? "published" : "skipped", source, item };
  } catch (error) {
    options.signal?.throwIfAborted();
    if (isObject(source)) {
      return { outcome: "refused", source, error: await refusalOfObject(storage, error) };
    }
    if (!(error instanceof RefusedError)) throw error;
    return { outcome: "refused", source, error };
  }
}
