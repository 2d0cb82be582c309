/** Storage with content in a bucket, for one test. */

import { readConfig } from "../../lib/server/config.ts";
import { BucketContent } from "../../lib/storage/content/bucket/content.ts";
import type { BucketSettings } from "../../lib/storage/content/content_place.ts";
import type { Engine } from "../../lib/storage/engines/engine.ts";
import { storageOn } from "../../lib/storage/engines/open_storage.ts";
import { type MediaSubject, subjectOn } from "./media_subject.ts";
import { openMemoryEngine } from "./memory_storage.ts";
import type { S3Store } from "./s3_store.ts";

let prefixes = 0;

/** Returns an unused prefix. */
export function newPrefix(): string {
  return `test ${++prefixes}`;
}

/** Opens empty storage under a prefix of a store, which may be behind another port. */
export async function openBucket(
  store: S3Store,
  engine?: Engine,
  prefix = newPrefix(),
  port = store.port,
): Promise<MediaSubject> {
  const database = engine ?? await openMemoryEngine();
  const content = new BucketContent(settingsOf(store, prefix, port));
  return subjectOn(storageOn(database, content), {
    replaced: 502,
    async damage({ digest }, bytes) {
      const key = encodeURI(`${prefix}/${digest.slice(0, 2)}/${digest}`);
      if (bytes === undefined) await store.request("DELETE", key);
      else await store.request("PUT", key, new Uint8Array(bytes));
    },
    async digests() {
      const keys = await store.keys(`${prefix}/`);
      return keys.map((key) => key.slice(-64)).filter((name) => /^[0-9a-f]{64}$/.test(name));
    },
  });
}

/** Returns the settings of a server. */
export function settingsOf(store: S3Store, prefix: string, port = store.port): BucketSettings {
  const environment = store.environment(prefix, port);
  const { content } = readConfig((name) => environment[name], "command");
  if (content.kind !== "bucket") throw new TypeError("CONTENT is not a bucket");
  return content;
}
