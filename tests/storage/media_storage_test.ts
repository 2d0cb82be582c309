import { assertEquals } from "@std/assert";
import { resolvesNext, stub } from "@std/testing/mock";
import { openEngine as openMemoryEngine } from "../../lib/storage/memory/engine.ts";
import { openEngine } from "../../lib/storage/sqlite/engine.ts";
import { openLocal } from "../support/local_storage.ts";
import { openMemory } from "../support/memory_storage.ts";
import { needing } from "../support/permissions.ts";
import { testMediaStorage } from "./media_storage_suite.ts";
import { newMetadata } from "./storage_suite.ts";

testMediaStorage("MediaStorage in memory", openMemory);
testMediaStorage(
  "MediaStorage on SQLite in memory",
  async () => openMemory(await openEngine("sqlite::memory:")),
);
testMediaStorage("MediaStorage on files", () => openLocal(), needing("files"));

Deno.test("find() distinguishes missing content from an item unpublished meanwhile", async () => {
  const engine = openMemoryEngine();
  await using subject = openMemory(engine);
  const { token } = await subject.publish(newMetadata(), new Uint8Array(10));
  const results = [await engine.catalogue.find(token)];
  await subject.unpublish(token, 5000);
  results.push(await engine.catalogue.find(token));
  using _find = stub(engine.catalogue, "find", resolvesNext(results));
  assertEquals(await subject.storage.find(token), results[1]);
});
