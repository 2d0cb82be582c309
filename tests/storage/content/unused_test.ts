/** Content that is being published is not reported as unused. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import type { Engine } from "../../../lib/storage/media/engine.ts";
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
      if ("digest" in item) answer = subject.storage.isUnused(item.digest);
      await new Promise((resolve) => setTimeout(resolve, 100)); // time to find the content
      return await add(item);
    });
    const { digest } = await subject.publish(newMetadata(), new Uint8Array(10));
    assertEquals(await answer, false);
    assertEquals(await subject.digests(), [digest]);
  });
}
