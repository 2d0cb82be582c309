/** Content that is being published is not reported as unused. */

import { assert, assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { Engine } from "../../../lib/storage/database/engine.ts";
import { isUnused, unusedIn } from "../../../lib/storage/content/unused.ts";
import { newPrefix, openBucket } from "../../support/bucket_storage.ts";
import { openLocal } from "../../support/local_storage.ts";
import type { MediaSubject } from "../../support/media_subject.ts";
import { openMemory, openMemoryEngine } from "../../support/memory_storage.ts";
import { needing, shared } from "../../support/permissions.ts";
import { S3_STORE, S3Store } from "../../support/s3_store.ts";
import { newMetadata } from "../storage_suite.ts";

const store = shared(S3_STORE, () => S3Store.start());

const rows: [
  name: string,
  register: ReturnType<typeof needing>,
  open: (engine: Engine) => Promise<MediaSubject>,
][] = [
  ["in memory", Deno.test, openMemory],
  ["in a folder", needing("files"), (engine) => openLocal(Promise.resolve(engine))],
  ["in a bucket", needing(...S3_STORE), (engine) => openBucket(store(), engine)],
];
for (const [name, register, open] of rows) {
  register(`isUnused() waits for who is publishing content ${name}`, async () => {
    const engine = await openMemoryEngine();
    await using subject = await open(engine);
    const add = engine.catalogue.add.bind(engine.catalogue);
    let answer: Promise<boolean> | undefined;
    using _add = stub(engine.catalogue, "add", async (item) => {
      if ("digest" in item) answer = isUnused(subject.storage, item.digest);
      await new Promise((resolve) => setTimeout(resolve, 100)); // time to find the content
      await add(item);
    });
    const { digest } = await subject.publish(newMetadata(), new Uint8Array(10));
    assertEquals(await answer, false);
    assertEquals(await subject.digests(), [digest]);
  });
}

needing(...S3_STORE)(
  "unusedIn() gives a publisher time between uploading content and locking it",
  async () => {
    const engine = await openMemoryEngine();
    const prefix = newPrefix();
    const [sent, lookedUp] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = {
      ...engine,
      async exclusively<T>(action: () => Promise<T>) {
        sent.resolve();
        await lookedUp.promise;
        await new Promise((resolve) => setTimeout(resolve, 300));
        return await engine.exclusively(action);
      },
    };
    const unused = engine.catalogue.unused.bind(engine.catalogue);
    using _unused = stub(engine.catalogue, "unused", async (digests: readonly string[]) => {
      const found = await unused(digests);
      if (found.length > 0) lookedUp.resolve();
      return found;
    });
    await using publisher = await openBucket(store(), slow, prefix);
    await using verifier = await openBucket(store(), engine, prefix);
    const publishing = publisher.publish(newMetadata(), new Uint8Array(10));
    await sent.promise;
    const [candidate = ""] = await Array.fromAsync(unusedIn(verifier.storage));
    assertEquals([candidate], await publisher.digests());
    assert(!await isUnused(verifier.storage, candidate));
    await publishing;
  },
);

Deno.test("unusedIn() finds unused content in more than one batch", async () => {
  const digests = Array.from({ length: 2_500 }, (_, index) => String(index));
  const unused = digests.filter((_, index) => index % 600 === 0);
  const content = {
    async *list() {
      yield* await Promise.resolve(digests);
    },
  };
  const catalogue = {
    unused: (batch: readonly string[]) =>
      Promise.resolve(batch.filter((digest) => batch.length <= 1_000 && unused.includes(digest))),
  };
  assertEquals(await Array.fromAsync(unusedIn({ content, catalogue })), unused);
});
