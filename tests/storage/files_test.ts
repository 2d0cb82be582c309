import { assertRejects } from "@std/assert";
import { StorageError } from "../../lib/storage/storage.ts";
import { streamOf } from "../support/body.ts";
import { openLocal } from "../support/local_storage.ts";
import { needing } from "../support/permissions.ts";
import { newMetadata } from "./storage_suite.ts";

const test = needing("files");

test("Files.open() reads nothing of a range before it is requested", async () => {
  await using subject = await openLocal();
  const { storage, publish, damage } = subject;
  const item = await publish(newMetadata(), new Uint8Array(400_000));
  const range = { first: 0, last: 299_999 };
  const reader = (await streamOf(() => storage.open(item, range))).getReader();
  await new Promise((resolve) => setTimeout(resolve)); // enough time to read ahead
  await damage(item, new Uint8Array()); // the same file, now empty
  await assertRejects(() => reader.read(), StorageError, "content ended early");
});
