/** Listing a bucket page by page. */

import { unescape } from "@std/html/entities";
import { StorageError } from "../../../errors/storage_error.ts";
import type { StoreClient } from "./client.ts";
import { reasonIn } from "./responses.ts";

/** A key, or a common prefix. */
const KEY = /<(?:Key|CommonPrefixes>\s*<Prefix)>([^<]*)</g;

/**
 * Yields the last part of each key with a prefix. Keys with another slash after the prefix give
 * only their folder, with that slash.
 *
 * @param location The name of the place in messages.
 */
export async function* listNames(
  client: StoreClient,
  prefix: string,
  location: string,
): AsyncGenerator<string> {
  const query = { "delimiter": "/", "encoding-type": "url", "list-type": "2", prefix };
  for (let next: Record<string, string> | undefined = {}; next !== undefined;) {
    const response = await client.request("GET", "", { query: { ...next, ...query } });
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
