import { assertEquals, assertRejects } from "@std/assert";
import { assertSpyCalls, resolvesNext, stub } from "@std/testing/mock";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { SingleReadError } from "../../lib/storage/errors.ts";
import type { LookupResult } from "../../lib/storage/item.ts";
import { newToken } from "../../lib/storage/token.ts";
import { openMemory } from "../support/memory_storage.ts";
import { fails, OneItem } from "../support/one_item.ts";
import { newMetadata, type Subject, testStorage } from "./storage_suite.ts";

// The suite's clock begins a generation with every lookup, so changes behind the cache are seen.
testStorage("CachedStorage", async (): Promise<Subject> => {
  const subject = await openMemory();
  return {
    ...subject,
    storage: new CachedStorage(subject.storage, subject.storage.catalogue, () => 0),
  };
});

const { item, result: published } = new OneItem();
const cachedOn = (storage: OneItem) => new CachedStorage(storage, storage, () => 0);

Deno.test("CachedStorage.find() reuses a lookup until its generation ends", async () => {
  let now = 1_000;
  const results: LookupResult[] = [published, { state: "unknown" }];
  for (const result of results) {
    const storage = new OneItem({ find: () => Promise.resolve(result) });
    const cached = cachedOn(storage);
    // The last step but one sets the clock back, which must not extend the generation.
    const steps = [[0, 1], [0, 1], [4_999, 1], [1, 2], [0, 2], [-5_000, 3], [0, 3]] as const;
    for (const [advance, finds] of steps) {
      now += advance;
      assertEquals(await cached.find(item.token, now), result);
      assertSpyCalls(storage.find, finds);
    }
  }
});

Deno.test("CachedStorage.find() shares a lookup in flight", async () => {
  const answers = Promise.withResolvers<LookupResult>();
  const storage = new OneItem({ find: () => answers.promise });
  const cached = cachedOn(storage);
  const finds = Array.from({ length: 50 }, () => cached.find(item.token, 0));
  answers.resolve(published);
  for (const found of await Promise.all(finds)) assertEquals(found, published);
  assertSpyCalls(storage.find, 1);
});

Deno.test("CachedStorage.find() does not cache faults", async () => {
  const answers = [new StorageError("test", "down"), published];
  const storage = new OneItem({ find: resolvesNext<LookupResult>(answers) });
  const cached = cachedOn(storage);
  await assertRejects(async () => await cached.find(item.token, 0), StorageError, "down");
  assertEquals(await cached.find(item.token, 0), published);
  assertSpyCalls(storage.find, 2);
});

Deno.test("CachedStorage.find() does not cache a lookup that began before a change", async () => {
  const unpublished: LookupResult = { state: "unpublished", kind: "audio", unpublishedAt: 0 };
  for (const isAskedMeanwhile of [false, true]) {
    const lookups: PromiseWithResolvers<LookupResult>[] = [];
    const storage = new OneItem({
      find() {
        lookups.push(Promise.withResolvers());
        return (lookups.at(-1) as PromiseWithResolvers<LookupResult>).promise;
      },
    });
    const cached = cachedOn(storage);
    const before = cached.find(item.token, 0);
    await new Promise((resolve) => setTimeout(resolve)); // it has begun
    storage.currentVersion++;
    await cached.generations.refresh(storage.versionTtlMs);
    const meanwhile = isAskedMeanwhile ? cached.find(item.token, storage.versionTtlMs) : undefined;
    lookups[0]?.resolve(published);
    assertEquals(await before, published);
    const after = cached.find(item.token, storage.versionTtlMs + 1);
    await new Promise((resolve) => setTimeout(resolve));
    lookups[1]?.resolve(unpublished);
    for (const found of [after, ...(meanwhile ? [meanwhile] : [])]) {
      assertEquals(await found, unpublished, "requested after the change");
    }
    assertSpyCalls(storage.find, 2);
  }
});

Deno.test("CachedStorage.find() reports what open() found, for five seconds by the clock", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  let now = 0;
  const cached = new CachedStorage(storage, storage.catalogue, () => now);
  const items = [
    await subject.publish(newMetadata(), new Uint8Array(5)),
    await subject.publish(newMetadata(), new Uint8Array(6)),
  ] as const;
  for (const { token } of items) await cached.find(token, now);
  // Two GETs fail, and each takes a time in which nothing else is requested.
  const faults: Error[] = [];
  for (const [at, item] of [[4_500, items[0]], [6_000, items[1]]] as const) {
    await subject.damage(item, undefined);
    const opening = assertRejects(() => cached.open(item), StorageError);
    now = at;
    faults.push(await opening);
    await subject.damage(item, new Uint8Array(item.length)); // sound, and still at fault
  }
  const find = async (index: 0 | 1) => {
    const finding = cached.find(items[index].token, now);
    return await finding.then(() => "found", (error) => error === faults[index] && "at fault");
  };
  const rows = [
    [6_000, "at fault", "at fault"],
    [9_499, "at fault", "at fault"],
    [9_500, "found", "at fault"],
    [10_999, "found", "at fault"],
    [11_000, "found", "found"],
  ] as const;
  for (const [at, first, second] of rows) {
    now = at;
    assertEquals([await find(0), await find(1)], [first, second], `at ${at}`);
  }
});

Deno.test("CachedStorage.find() does not report what is wrong with one read only", async () => {
  await using subject = await openMemory();
  const { storage } = subject;
  const cached = new CachedStorage(storage, storage.catalogue, () => 0);
  const item = await subject.publish(newMetadata(), new Uint8Array(5));
  for (const [error, isReported] of [[SingleReadError, false], [StorageError, true]] as const) {
    using _open = stub(storage.content, "open", fails(new error("test", "all are in use")));
    await assertRejects(() => cached.open(item), error);
    const finding = cached.find(item.token, 0);
    if (isReported) await assertRejects(() => finding, StorageError);
    else assertEquals((await finding).state, "published");
  }
});

Deno.test("CachedStorage.open() invalidates other items, too, which may share the content", async () => {
  const storage = new OneItem();
  const cached = cachedOn(storage);
  const other = newToken();
  await cached.find(other, 0);
  await assertRejects(async () => await cached.open(item), StorageError);
  await cached.find(other, 0);
  assertSpyCalls(storage.find, 2);
});

Deno.test("CachedStorage caches a bounded number of tokens", async () => {
  const storage = new OneItem({ find: () => Promise.resolve({ state: "unknown" }) });
  const cached = cachedOn(storage);
  const oldest = newToken();
  await cached.find(oldest, 0);
  for (let count = 0; count < 10_000; count++) await cached.find(newToken(), 0);
  assertSpyCalls(storage.find, 10_001);
  await cached.find(oldest, 0);
  assertSpyCalls(storage.find, 10_002);
});
