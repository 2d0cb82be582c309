import { assertEquals, assertRejects } from "@std/assert";
import { newToken } from "../../lib/storage/token.ts";
import { CachedStorage } from "../../lib/storage/cache.ts";
import { type Finding, type Storage, StorageError } from "../../lib/storage/storage.ts";
import { description, type Subject, testStorage } from "./storage_suite.ts";
import { openMemory } from "../support/memory_storage.ts";

// A clock that goes on with every look makes every entry stale at once, so that what the suite
// changes behind the cache is seen.
testStorage("CachedStorage", (): Subject => {
  const subject = openMemory();
  let time = 0;
  const storage = new CachedStorage(subject.storage, { ttl: 1, now: () => time += 10 });
  return { ...subject, storage };
});

/** Storage that counts look-ups and answers them when told to. */
function countingStorage(answer: () => Promise<Finding>) {
  const counts = { finds: 0 };
  const storage: Storage = {
    find() {
      counts.finds++;
      return answer();
    },
    open: () => Promise.reject(new StorageError("test", "content is missing")),
    check: () => Promise.resolve(),
    close() {},
  };
  return { storage, counts };
}

/** A finding without the time until which it holds. */
function stateOf({ freshUntil: _, ...finding }: Finding) {
  return finding;
}

const item = { ...description(), digest: "00".repeat(32), length: 1 };
const published: Finding = { state: "published", kind: "audio", item };

Deno.test("CachedStorage.find() believes a look-up until its time is over", async () => {
  let now = 1_000;
  for (const finding of [published, { state: "unknown" } as const]) {
    const { storage, counts } = countingStorage(() => Promise.resolve(finding));
    const cached = new CachedStorage(storage, { ttl: 5_000, now: () => now });
    // The last step sets the clock back, which must not make anything last longer.
    const steps = [[0, 1], [0, 1], [4_999, 1], [1, 2], [0, 2], [-5_000, 3], [0, 3]] as const;
    for (const [advance, finds] of steps) {
      now += advance;
      assertEquals(stateOf(await cached.find(item.token)), finding);
      assertEquals(counts.finds, finds);
    }
  }
});

Deno.test("CachedStorage.find() shares a look-up that is under way", async () => {
  const answers = Promise.withResolvers<Finding>();
  const { storage, counts } = countingStorage(() => answers.promise);
  const cached = new CachedStorage(storage, { ttl: 5_000, now: () => 0 });
  const finds = Array.from({ length: 50 }, () => cached.find(item.token));
  answers.resolve(published);
  for (const found of await Promise.all(finds)) assertEquals(stateOf(found), published);
  assertEquals(counts.finds, 1);
});

Deno.test("CachedStorage.find() does not remember faults", async () => {
  const answers = [Promise.reject(new StorageError("test", "down")), Promise.resolve(published)];
  const { storage, counts } = countingStorage(() => answers.shift() ?? Promise.reject());
  const cached = new CachedStorage(storage, { ttl: 5_000, now: () => 0 });
  await assertRejects(() => cached.find(item.token), StorageError, "down");
  assertEquals(stateOf(await cached.find(item.token)), published);
  assertEquals(counts.finds, 2);
});

Deno.test("CachedStorage.open() forgets what proves wrong", async () => {
  const { storage, counts } = countingStorage(() => Promise.resolve(published));
  const cached = new CachedStorage(storage, { ttl: 5_000, now: () => 0 });
  await cached.find(item.token);
  await assertRejects(() => cached.open(item), StorageError);
  await cached.find(item.token);
  assertEquals(counts.finds, 2);
});

Deno.test("CachedStorage remembers a bounded number of tokens", async () => {
  const { storage, counts } = countingStorage(() => Promise.resolve({ state: "unknown" }));
  const cached = new CachedStorage(storage, { ttl: 5_000, now: () => 0 });
  const oldest = newToken();
  await cached.find(oldest);
  for (let count = 0; count < 10_000; count++) await cached.find(newToken());
  assertEquals(counts.finds, 10_001);
  await cached.find(oldest);
  assertEquals(counts.finds, 10_002);
});
