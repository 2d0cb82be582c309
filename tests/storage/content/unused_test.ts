/** Content that is being published is not reported as unused. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { Engine } from "../../../lib/storage/media/engine.ts";
import { isUnused, unusedIn } from "../../../lib/storage/content/unused.ts";
import { openLocal } from "../../support/local_storage.ts";
import type { MediaSubject } from "../../support/media_subject.ts";
import { openMemory, openMemoryEngine } from "../../support/memory_storage.ts";
import { needing } from "../../support/permissions.ts";
import { newMetadata } from "../storage_suite.ts";

const rows: [
  name: string,
  register: ReturnType<typeof needing>,
  open: (engine: Engine) => Promise<MediaSubject>,
][] = [
  ["in memory", Deno.test, openMemory],
  ["in a folder", needing("files"), (engine) => openLocal(Promise.resolve(engine))],
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
