import { assert, assertEquals, assertRejects } from "@std/assert";
import { stub } from "@std/testing/mock";
import { StorageError } from "../../lib/storage/storage.ts";
import { streamOf } from "../support/body.ts";
import { openLocal } from "../support/local_storage.ts";
import { needing } from "../support/permissions.ts";
import { createHandler } from "../../main.ts";
import { CONFIG } from "../server/request_table.ts";
import { newMetadata } from "./storage_suite.ts";

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

test("a response keeps its content when the next is read into the same bytes", async () => {
  await using subject = await openLocal();
  const { storage, publish } = subject;
  const content = Uint8Array.from({ length: 100_000 }, (_, index) => index % 251);
  const { token } = await publish({ ...newMetadata(), kind: "audio" }, content);
  const opened: unknown[] = [];
  const open = storage.open.bind(storage);
  using _ = stub(storage, "open", (...args) => {
    const body = open(...args);
    opened.push(body instanceof Uint8Array ? body.buffer : body);
    return body;
  });
  const handle = createHandler({ storage, config: CONFIG, now: Date.now, log() {} });
  const get = (range: string) =>
    handle(new Request(`http://test/audio/${token}`, { headers: { Range: `bytes=${range}` } }));
  const [first, second] = [await get("0-49999"), await get("50000-99999")];
  assert(opened.length === 2 && opened[0] === opened[1]);
  assertEquals(await second.bytes(), content.subarray(50_000));
  assertEquals(await first.bytes(), content.subarray(0, 50_000));
});

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
