/** Content that is being published is not reported as unused. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { openLocal } from "../../support/local_storage.ts";
import { openMemoryEngine } from "../../support/memory_storage.ts";
import { needing } from "../../support/permissions.ts";
import { newMetadata } from "../storage_suite.ts";

needing("files")("isUnused() waits for who is publishing the content into a folder", async () => {
  const engine = await openMemoryEngine();
  await using subject = await openLocal(Promise.resolve(engine));
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
