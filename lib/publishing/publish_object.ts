/** Publishing an object of the bucket in place, under its own key. */

import { unlessAborted } from "../async/abort.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { StorageError } from "../errors/storage_error.ts";
import type { Body } from "../http/outcome.ts";
import type { ExistingContent, Step } from "../storage/content/content_store.ts";
import type { ContentReference, PublishedItem } from "../storage/item.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import { newToken } from "../storage/token.ts";
import type { Bytes } from "./bytes.ts";
import type { MediaType } from "./media_type.ts";
import {
  describeContent,
  fileName,
  type PublishOptions,
  requireFree,
  statedIn,
} from "./publish.ts";

export function isObject(text: string): boolean {
  return text.startsWith("s3://");
}

/**
 * Publishes an object in place. Reads it once. If the object is replaced later, the server does not
 * serve its replacement.
 *
 * @param location `s3://bucket/key`
 * @returns The item. If its token is not the given one, the item was already published.
 * @throws {RefusedError} When the object does not exist, cannot be published in place, or is
 *   neither audio nor video, or the token is taken.
 * @throws {StorageError} When the object is replaced while it is read, or storage fails.
 */
export async function publishObject(
  storage: MediaStorage,
  location: string,
  options: PublishOptions = {},
): Promise<PublishedItem> {
  const { token = newToken(), name = fileName(location), reuse, signal } = options;
  await requireFree(storage, token); // fails early; the commit checks again
  await unlessAborted(storage.prepare(), signal);
  const found = await describeObject(storage, location, options);
  signal?.throwIfAborted();
  const item = { token, name, ...statedIn(options), ...found };
  const { catalogue } = storage;
  return await (reuse ? catalogue.addUnlessPublished(item) : catalogue.add(item));
}

/**
 * Returns the refusal of an object that could not be published.
 *
 * @throws The error, or another, if more than this object is at fault.
 */
export async function refusalOfObject(
  storage: MediaStorage,
  error: unknown,
): Promise<RefusedError> {
  if (error instanceof RefusedError) return error;
  if (!(error instanceof StorageError)) throw error;
  // These throw if more than this object is at fault.
  await storage.catalogue.version();
  await storage.content.id();
  return new RefusedError(error.message, { kind: error.kind });
}

/**
 * Reads an object as {@linkcode publishObject} does, and returns the facts that it would publish.
 */
export async function describeObject(
  storage: MediaStorage,
  location: string,
  options: PublishOptions,
): Promise<MediaType & Required<ContentReference>> {
  const { name = fileName(location), signal, watch = (chunks) => chunks } = options;
  const object = await unlessAborted(storage.statObject(location), signal);
  const { length: size, validator } = object;
  const read = (step: Step) => watch(readContent(object.open(), signal), { name, size, step });
  const content = { source: location, bytes: bytesOf(object), read, validator };
  const found = await describeContent(content, options);
  return { ...found, location, validator };
}

/** Reads content to its end, or until the signal is aborted. */
export async function* readContent(
  opening: Promise<Body> | Body,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const body = await unlessAborted(Promise.resolve(opening), signal);
  if (body instanceof Uint8Array) yield body;
  // Aborting does not wait until the source is cancelled, because standard input may never be.
  else yield* body.pipeThrough(new TransformStream(), signal && { signal });
}

/** Reads ranges of an object. */
function bytesOf(object: ExistingContent): Bytes {
  return {
    size: object.length,
    isWhole: true,
    async read(offset, length) {
      const last = Math.min(offset + length, object.length) - 1;
      if (offset > last) return new Uint8Array();
      return await new Response(await object.open({ first: offset, last })).bytes();
    },
  };
}
