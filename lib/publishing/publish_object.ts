/**
 * Publishing an object of the bucket in place, under its own key.
 */

import type { Body } from "../http/answer.ts";
import type { Awaitable } from "../http/awaitable.ts";
import { TokenTakenError } from "../storage/catalogue.ts";
import type { ExistingContent } from "../storage/content.ts";
import type { MediaStorage } from "../storage/media_storage.ts";
import type { PublishedItem } from "../storage/storage.ts";
import { newToken } from "../storage/token.ts";
import { unlessAborted } from "./abort.ts";
import {
  detect,
  fileName,
  type PublishOptions,
  RefusedError,
  requireExpected,
  requireFree,
  sha256Of,
  statedIn,
} from "./publish.ts";
import type { Bytes } from "./tracks/bytes.ts";

/** Whether a text is the location of an object. */
export function isObject(text: string): boolean {
  return text.startsWith("s3://");
}

/**
 * Publishes an object in place. It is read once; if another object replaces it later, the server
 * does not serve that.
 *
 * @param location `s3://bucket/key`
 * @returns The item. If its token is not the one asked for, it had already been published.
 * @throws {RefusedError} When it is neither audio nor video, or the token is taken.
 * @throws {ObjectError} When the object does not exist, or cannot be published in place.
 * @throws {StorageError} When the object is replaced while it is read, or storage fails.
 * @throws What aborted the signal.
 */
export async function publishObject(
  storage: MediaStorage,
  location: string,
  options: PublishOptions = {},
): Promise<PublishedItem> {
  const { token = newToken(), name = fileName(location), reuse, expected, signal } = options;
  const { watch = (chunks) => chunks } = options;
  await requireFree(storage, token); // before any work; the commit makes sure of it
  const object = await unlessAborted(storage.inspect(location), signal);
  const { length, validator } = object;
  const detected = await detect(location, bytesOf(object), options);
  const progress = { name, size: length, step: "hashing" } as const;
  const digest = await sha256Of(watch(readAll(object, signal), progress));
  requireExpected(location, { digest, length, validator }, expected);
  try {
    signal?.throwIfAborted();
    const content = { digest, length, location, validator };
    const published = reuse && await storage.findByContent(content, name);
    if (published !== undefined) return published;
    const metadata = { token, ...detected, name, ...statedIn(options) };
    return await storage.publishInPlace(metadata, content);
  } catch (error) {
    if (error instanceof TokenTakenError) throw new RefusedError(error.message);
    throw error;
  }
}

/** Reads content to its end, or until the signal is aborted. */
export async function* readAll(
  object: { readonly open: () => Awaitable<Body> },
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const body = await unlessAborted(Promise.resolve(object.open()), signal);
  if (body instanceof Uint8Array) return yield body;
  const reader = body.getReader();
  try {
    for (;;) {
      const { value } = await unlessAborted(reader.read(), signal);
      if (value === undefined) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

/** Reads ranges of an object. */
function bytesOf(object: ExistingContent): Bytes {
  return {
    size: object.length,
    async read(offset, length) {
      const last = Math.min(offset + length, object.length) - 1;
      if (offset > last) return new Uint8Array();
      return await new Response(await object.open({ first: offset, last })).bytes();
    },
  };
}
