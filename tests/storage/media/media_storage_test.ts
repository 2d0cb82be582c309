import { assertEquals, assertRejects } from "@std/assert";
import { resolvesNext, stub } from "@std/testing/mock";
import { StorageError } from "../../../lib/errors/storage_error.ts";
import { BucketContent } from "../../../lib/storage/content/bucket/content.ts";
import { FolderContent } from "../../../lib/storage/content/folder/content.ts";
import { entryOf } from "../../../lib/storage/item.ts";
import { MediaStorage } from "../../../lib/storage/media/media_storage.ts";
import { newMetadata } from "../storage_suite.ts";
import { openBucket } from "../../support/bucket_storage.ts";
import { openLocal } from "../../support/local_storage.ts";
import { openMemory, openMemoryEngine } from "../../support/memory_storage.ts";
import { needing, shared } from "../../support/permissions.ts";
import { S3_STORE, S3Store } from "../../support/s3_store.ts";
import { refusal, response, ScriptedStore } from "../../support/scripted_store.ts";
import { testMediaStorage } from "./media_storage_suite.ts";

const store = shared(S3_STORE, () => S3Store.start());

testMediaStorage("MediaStorage in memory", () => openMemory());
testMediaStorage("MediaStorage on files", () => openLocal(), needing("files"));
testMediaStorage("MediaStorage on a bucket", () => openBucket(store()), needing(...S3_STORE));

needing("files")("unpublish() leaves content of another catalogue alone", async () => {
  await using subject = await openLocal();
  await using another = await openLocal();
  const content = new Uint8Array(10);
  const { token, digest } = await subject.publish(newMetadata(), content);
  await another.publish(newMetadata(), content);
  const { catalogue } = subject.storage;
  const wrong = new MediaStorage(
    catalogue,
    new FolderContent(`${another.folder}/files`, catalogue),
  );
  await assertRejects(
    () => wrong.unpublish(token, 5000),
    StorageError,
    "is not the folder with the content of this catalogue",
  );
  assertEquals((await subject.storage.find(token)).state, "published");
  assertEquals(await another.digests(), [digest]);
});

needing("network")(
  "a fresh bucket can be prepared while others do so, and the store finds no object that is replaced",
  async () => {
    await using store = new ScriptedStore();
    store.script = (head) => head.startsWith("PUT") ? response(200, {}) : refusal(404, "NoSuchKey");
    await using engine = await openMemoryEngine();
    const content = new BucketContent(store.settings);
    await new MediaStorage(engine.catalogue, content).prepare();
    await content.close();
  },
);

needing("network")(
  "addAll() fails, and blames no item, when the whole bucket is refused from an item on",
  async () => {
    await using store = new ScriptedStore();
    let isRefused = false;
    store.script = (head) => {
      isRefused ||= head.startsWith("GET /media/a.mp4 ");
      return isRefused ? refusal(403, "ExpiredToken") : refusal(404, "NoSuchKey");
    };
    const content = new BucketContent(store.settings);
    await using engine = await openMemoryEngine();
    const storage = new MediaStorage(engine.catalogue, content);
    const location = "s3://media/a.mp4";
    const item = {
      ...newMetadata(),
      digest: "ab".repeat(32),
      length: 7,
      location,
      validator: '"v"',
    };
    const adding = storage.addAll([[item.token, entryOf(item)]]);
    await assertRejects(() => adding, StorageError, "ExpiredToken");
    await content.close();
  },
);

Deno.test("find() distinguishes missing content from an item unpublished meanwhile", async () => {
  const engine = await openMemoryEngine();
  await using subject = await openMemory(engine);
  const { token } = await subject.publish(newMetadata(), new Uint8Array(10));
  const results = [await engine.catalogue.find(token)];
  await subject.unpublish(token, 5000);
  results.push(await engine.catalogue.find(token));
  using _find = stub(engine.catalogue, "find", resolvesNext(results));
  assertEquals(await subject.storage.find(token), results[1]);
});
