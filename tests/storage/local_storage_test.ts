import { assert, assertEquals, assertRejects } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { TokenTakenError } from "../../lib/storage/catalogue.ts";
import { openEngine } from "../../lib/storage/kv/engine.ts";
import { StorageError } from "../../lib/storage/storage.ts";
import { description, testStorage } from "./storage_suite.ts";
import { openMemory } from "../support/memory_storage.ts";
import { openLocal } from "../support/local_storage.ts";

testStorage("MediaStorage on a file", () => openLocal());
testStorage("MediaStorage in memory", () => Promise.resolve(openMemory()));

const CONTENT = new TextEncoder().encode("content");

Deno.test("MediaStorage.publish() never uses a token twice", async () => {
  await using subject = await openLocal();
  const first = await subject.publish(description(), CONTENT);
  const again = { ...description("video"), token: first.token };
  await assertRejects(() => subject.publish(again, CONTENT), TokenTakenError);
  await assertRejects(() => subject.publish(again, new Uint8Array([1])), TokenTakenError);
  const found = await subject.storage.find(first.token);
  assertEquals(found, { state: "published", kind: "audio", item: first });

  await subject.unpublish(first.token, 5000);
  await assertRejects(() => subject.publish(again, CONTENT), TokenTakenError);
  assertEquals(await contentFiles(subject.folder), []);
});

Deno.test("MediaStorage.publish() stores the same content once", async () => {
  await using subject = await openLocal();
  const items = await Promise.all(
    Array.from({ length: 8 }, () => subject.publish(description(), CONTENT)),
  );
  assertEquals(await contentFiles(subject.folder), [items[0]?.digest]);

  for (const { token } of items.slice(1)) assert(await subject.storage.unpublish(token, 5000));
  assertEquals(await contentFiles(subject.folder), [items[0]?.digest]);
  assert(await subject.storage.unpublish(items[0]?.token ?? newToken(), 5000));
  assertEquals(await contentFiles(subject.folder), []);
});

Deno.test("MediaStorage.unpublish() says whether there was something to unpublish", async () => {
  await using subject = await openLocal();
  const { token } = await subject.publish(description(), CONTENT);
  assertEquals(await subject.storage.unpublish(newToken(), 5000), false);
  assertEquals(await subject.storage.unpublish(token, 5000), true);
  assertEquals(await subject.storage.unpublish(token, 6000), false);
  const tombstone = { state: "unpublished", kind: "audio", unpublishedAt: 5000 } as const;
  assertEquals(await subject.storage.lookUp(token), tombstone);
});

Deno.test("MediaStorage keeps content that is published while it is unpublished", async () => {
  await using subject = await openLocal();
  for (let round = 0; round < 20; round++) {
    const { token } = await subject.publish(description(), CONTENT);
    const [, item] = await Promise.all([
      subject.storage.unpublish(token, 5000),
      subject.publish(description(), CONTENT),
    ]);
    assertEquals((await subject.storage.find(item.token)).state, "published");
    await subject.storage.unpublish(item.token, 5000);
  }
  assertEquals(await contentFiles(subject.folder), []);
});

Deno.test("MediaStorage.list() goes through everything in the order of tokens", async () => {
  await using subject = await openLocal();
  assert(await subject.storage.isEmpty());
  const tokens = [];
  for (let count = 0; count < 250; count++) {
    tokens.push((await subject.publish(description(), CONTENT)).token);
  }
  await subject.unpublish(tokens[7] ?? newToken(), 5000);
  const listed = await Array.fromAsync(subject.storage.list());
  assertEquals(listed.map(([token]) => token), tokens.toSorted());
  assertEquals(listed.filter(([, { state }]) => state === "unpublished").length, 1);
  assert(!await subject.storage.isEmpty());
});

Deno.test("MediaStorage takes a malformed record for a fault, not for absence", async () => {
  await using subject = await openLocal();
  const item = await subject.publish(description(), CONTENT);
  using kv = await Deno.openKv(`${subject.folder}/catalogue.sqlite`);
  const whole = (await kv.get(["item", item.token])).value as Record<string, unknown>;
  const tombstone = { state: "unpublished", kind: "video", unpublishedAt: 5 };
  const rows: [record: unknown, faults: string | undefined][] = [
    [whole, undefined],
    [{ ...whole, writtenBy: "a later version" }, undefined],
    [{ ...whole, name: "", language: "de-AT" }, undefined],
    [tombstone, undefined],
    [
      { state: "published", kind: "audio", type: "audio/mpeg" },
      "length, digest, publishedAt",
    ],
    [{ ...whole, kind: "text" }, "kind"],
    [{ ...whole, type: "text/html" }, "type"],
    [{ ...whole, type: "audio/mpeg\r\nX: y" }, "type"],
    [{ ...whole, length: -1 }, "length"],
    [{ ...whole, length: 1.5 }, "length"],
    [{ ...whole, length: "7" }, "length"],
    [{ ...whole, digest: "AB".repeat(32) }, "digest"],
    [{ ...whole, digest: "../../etc/passwd" }, "digest"],
    [{ ...whole, publishedAt: NaN }, "publishedAt"],
    [{ ...whole, name: 7 }, "name"],
    [{ ...whole, language: "de\n" }, "language"],
    [{ ...tombstone, unpublishedAt: "yesterday" }, "unpublishedAt"],
    [{ ...whole, state: "constructor" }, "state"],
    [{}, "state"],
    ["published", "state"],
    [7, "state"],
  ];
  for (const [record, faults] of rows) {
    await kv.set(["item", item.token], record);
    if (faults === undefined) {
      const finding = await subject.storage.find(item.token);
      assert(finding.state !== "unknown" && !JSON.stringify(finding).includes("later version"));
      continue;
    }
    const error = await assertRejects(() => subject.storage.find(item.token), StorageError);
    assertEquals(error.message, `kv: a record of the catalogue is malformed (${faults})`);
  }
});

Deno.test("MediaStorage.open() says what cannot be opened", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(
    `${folder}/catalogue.sqlite`,
    "no database, and not a short text either",
  );
  const opening = () => openEngine(`${folder}/catalogue.sqlite`);
  await assertRejects(opening, StorageError, "kv: cannot open the catalogue");
  await Deno.remove(folder, { recursive: true });
});

async function contentFiles(folder: string): Promise<string[]> {
  const names = [];
  for await (const shard of Deno.readDir(`${folder}/files`)) {
    if (shard.name.length !== 2) continue;
    for await (const { name } of Deno.readDir(`${folder}/files/${shard.name}`)) names.push(name);
  }
  return names;
}

Deno.test("MediaStorage.open() reads nothing of a range before it is asked for", async () => {
  await using subject = await openLocal();
  const { storage, publish, damage } = subject;
  const item = await publish(description(), CONTENT);
  const reader = (await storage.open(item, { first: 0, last: 3 })).getReader();
  await new Promise((resolve) => setTimeout(resolve)); // time enough to read ahead
  await damage(item, new Uint8Array()); // the same file, now empty
  await assertRejects(() => reader.read(), StorageError, "content ended early");
});
