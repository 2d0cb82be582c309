/**
 * What is in a bucket, page by page.
 */

import { unescape } from "@std/html/entities";
import { StorageError } from "../storage.ts";
import { reasonIn } from "./responses.ts";
import type { StoreClient } from "./client.ts";

/** Milliseconds that a page may take. */
const TIMEOUT = 30_000;

/** Characters of the longest page: a thousand keys, each of 1,024 bytes at most, and what is said of them. */
const MAX_PAGE = 16 * 2 ** 20;

/** A key, or the part that keys have in common. */
const KEY = /<(?:Key|CommonPrefixes>\s*<Prefix)>([^<]*)</g;

/**
 * The last parts of the keys that begin with a prefix. Of those that go on after a slash, only the
 * folder is told, with that slash.
 *
 * @param location How messages name the place.
 * @throws {StorageError} When the store does not list them.
 */
export async function* listNames(
  client: StoreClient,
  prefix: string,
  location: string,
): AsyncGenerator<string> {
  const query = { "delimiter": "/", "encoding-type": "url", "list-type": "2", prefix };
  for (let next: Record<string, string> | undefined = {}; next !== undefined;) {
    const options = { query: { ...next, ...query }, timeout: TIMEOUT, maxText: MAX_PAGE };
    const response = await client.request("GET", "", options);
    const { status, text } = response;
    if (status !== 200 || !/<\/ListBucketResult>\s*$/.test(text)) {
      throw new StorageError("bucket", `${location} cannot be listed${reasonIn(response)}`);
    }
    for (const [, key = ""] of text.matchAll(KEY)) {
      yield key.replaceAll(/%2F/gi, "/").replace(/.*\/(?=.)/s, "");
    }
    const token = /<NextContinuationToken>([^<]+)</.exec(text)?.[1];
    next = token === undefined ? undefined : { "continuation-token": unescape(token) };
  }
}
