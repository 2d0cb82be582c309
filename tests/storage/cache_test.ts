import { assertEquals, assertRejects } from "@std/assert";
import { assertSpyCalls, resolvesNext } from "@std/testing/mock";
import { StorageError } from "../../lib/errors/storage_error.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import type { LookupResult } from "../../lib/storage/item.ts";
import { newToken } from "../../lib/storage/token.ts";
import { openMemory } from "../support/memory_storage.ts";
import { OneItem } from "../support/one_item.ts";
import { type Subject, testStorage } from "./storage_suite.ts";

// The suite's clock begins a generation with every lookup, so changes behind the cache are seen.
testStorage("CachedStorage", async (): Promise<Subject> => {
  const subject = await openMemory();
  return { ...subject, storage: new CachedStorage(subject.storage, subject.storage.catalogue) };
});

const { item, result: published } = new OneItem();

Deno.test("CachedStorage.find() reuses a lookup until its generation ends", async () => {
  let now = 1_000;
  const results: LookupResult[] = [published, { state: "unknown" }];
  for (const result of results) {
    const storage = new OneItem({ find: () => Promise.resolve(result) });
    const cached = new CachedStorage(storage, storage);
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
  const cached = new CachedStorage(storage, storage);
  const finds = Array.from({ length: 50 }, () => cached.find(item.token, 0));
  answers.resolve(published);
  for (const found of await Promise.all(finds)) assertEquals(found, published);
  assertSpyCalls(storage.find, 1);
});

Deno.test("CachedStorage.find() does not cache faults", async () => {
  const answers = [new StorageError("test", "down"), published];
  const storage = new OneItem({ find: resolvesNext<LookupResult>(answers) });
  const cached = new CachedStorage(storage, storage);
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
    const cached = new CachedStorage(storage, storage);
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

Deno.test("CachedStorage.find() reports what open() found, for five seconds", async () => {
  const storage = new OneItem();
  const cached = new CachedStorage(storage, storage);
  await cached.find(item.token, 0);
  const fault = await assertRejects(async () => await cached.open(item), StorageError);
  for (const now of [0, 4_999]) {
    assertEquals(await assertRejects(() => cached.find(item.token, now), StorageError), fault);
  }
  assertSpyCalls(storage.find, 1);
  assertEquals((await cached.find(item.token, 5_000)).state, "published");
  assertSpyCalls(storage.find, 2);
});

Deno.test("CachedStorage.open() invalidates other items, too, which may share the content", async () => {
  const storage = new OneItem();
  const cached = new CachedStorage(storage, storage);
  const other = newToken();
  await cached.find(other, 0);
  await assertRejects(async () => await cached.open(item), StorageError);
  await cached.find(other, 0);
  assertSpyCalls(storage.find, 2);
});

Deno.test("CachedStorage caches a bounded number of tokens", async () => {
  const storage = new OneItem({ find: () => Promise.resolve({ state: "unknown" }) });
  const cached = new CachedStorage(storage, storage);
  const oldest = newToken();
  await cached.find(oldest, 0);
  for (let count = 0; count < 10_000; count++) await cached.find(newToken(), 0);
  assertSpyCalls(storage.find, 10_001);
  await cached.find(oldest, 0);
  assertSpyCalls(storage.find, 10_002);
});
