import { assert, assertEquals, assertRejects } from "@std/assert";
import { StorageError } from "../../../../lib/storage/errors.ts";
import { streamOf } from "../../../support/body.ts";
import { openLocal } from "../../../support/local_storage.ts";
import { needing, program } from "../../../support/permissions.ts";
import { newMetadata } from "../../storage_suite.ts";

const test = needing("files");

test("content that is opened twice at once is whole both times", async () => {
  await using subject = await openLocal();
  const { storage, publish } = subject;
  const content = Uint8Array.from({ length: 100_000 }, (_, index) => index % 251);
  const item = await publish(newMetadata(), content);
  const [first, second] = [
    await storage.open(item, { first: 0, last: 49_999 }),
    await storage.open(item, { first: 50_000, last: 99_999 }),
  ];
  assertEquals([first, second], [content.subarray(0, 50_000), content.subarray(50_000)]);
});

needing("processes", program("mkfifo"), program("ln"), program("mkdir"))(
  "content that is no regular file is a fault, and blocks nothing",
  async () => {
    await using subject = await openLocal();
    const { storage, publish, damage, folder } = subject;
    const item = await publish(newMetadata(), new Uint8Array(10));
    const path = `${folder}/files/${item.digest.slice(0, 2)}/${item.digest}`;
    for (const command of [["mkfifo", path], ["ln", "-s", "/dev/zero", path], ["mkdir", path]]) {
      await damage(item, undefined);
      const [program = "", ...args] = command;
      assert((await new Deno.Command(program, { args }).output()).success);
      await assertRejects(() => storage.find(item.token), StorageError, "is not a regular file");
      await assertRejects(() => storage.open(item), StorageError, "is not a regular file");
    }
  },
);

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
