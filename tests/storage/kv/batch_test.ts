import { assert, assertEquals, assertRejects } from "@std/assert";
import { BatchedReads } from "../../../lib/storage/kv/batch.ts";
import { StorageError } from "../../../lib/storage/storage.ts";

/** A database that answers when it is told to, and holds the last part of each key as its value. */
class SlowKv {
  readonly calls: { keys: readonly Deno.KvKey[]; answer: (error?: Error) => Promise<void> }[] = [];
  readonly reads = new BatchedReads(this as unknown as Deno.Kv);

  getMany(keys: readonly Deno.KvKey[]): Promise<{ value: unknown }[]> {
    const { promise, resolve, reject } = Promise.withResolvers<{ value: unknown }[]>();
    const answer = async (error?: Error) => {
      if (error === undefined) resolve(keys.map((key) => ({ value: key.at(-1) })));
      else reject(error);
      await turn();
    };
    this.calls.push({ keys, answer });
    return promise;
  }

  read(count: number, from = 0): Promise<unknown>[] {
    return Array.from({ length: count }, (_, index) => this.reads.read(["item", from + index]));
  }

  /** Waits until there were so many calls. */
  async called(count: number): Promise<void> {
    for (let turns = 0; this.calls.length < count; turns++) {
      if (turns === 100_000) throw new Error(`${this.calls.length} calls instead of ${count}`);
      await turn();
    }
  }

  get sizes(): number[] {
    return this.calls.map(({ keys }) => keys.length);
  }
}

/** Lets everything that is due happen. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

Deno.test("BatchedReads.read() does not let a read alone wait", async () => {
  const kv = new SlowKv();
  const [read] = kv.read(1);
  await turn();
  assertEquals(kv.sizes, [1]);
  await kv.calls[0]?.answer();
  assertEquals(await read, 0);
});

Deno.test("BatchedReads.read() gives each its own, at most ten at once", async () => {
  const kv = new SlowKv();
  const reads = kv.read(25);
  assertEquals(kv.sizes, [10, 10]); // the rest waits for them to come back, a little
  await kv.calls[1]?.answer();
  await kv.calls[0]?.answer();
  await kv.called(3);
  assertEquals(kv.sizes, [10, 10, 5]);
  await kv.calls[2]?.answer();
  assertEquals(await Promise.all(reads), Array.from({ length: 25 }, (_, index) => index));
});

Deno.test("BatchedReads.read() gathers what comes while another batch is under way", async () => {
  const kv = new SlowKv();
  const reads = kv.read(1);
  await turn();
  for (let index = 1; index < 5; index++) reads.push(...kv.read(1, index));
  assertEquals(kv.sizes, [1]);
  await kv.calls[0]?.answer();
  assertEquals(kv.sizes, [1, 4]);
  await kv.calls[1]?.answer();
  assertEquals(await Promise.all(reads), [0, 1, 2, 3, 4]);
});

Deno.test("BatchedReads.read() is not held up by a call that never returns", async () => {
  const kv = new SlowKv();
  const held = kv.read(1);
  await turn();
  const reads = kv.read(3, 1);
  assertEquals(kv.sizes, [1]);
  await kv.called(2); // it takes a millisecond or a few
  await kv.calls[1]?.answer();
  assertEquals(await Promise.all(reads), [1, 2, 3]);
  const rejected = assertRejects(() => held[0] as Promise<unknown>, StorageError);
  await kv.calls[0]?.answer(new Error("at last"));
  await rejected;
});

Deno.test("BatchedReads.read() fails with its own batch, and with no other", async () => {
  const kv = new SlowKv();
  const reads = kv.read(12);
  const failed = Promise.allSettled(reads.slice(0, 10));
  assertEquals(kv.sizes, [10]);
  await kv.calls[0]?.answer(new Error("disk"));
  for (const { status } of await failed) assertEquals(status, "rejected");
  await assertRejects(() => reads[0] as Promise<unknown>, StorageError, "cannot read an item");
  await kv.called(2);
  await kv.calls[1]?.answer();
  assertEquals(await Promise.all(reads.slice(10)), [10, 11]);
});

Deno.test("BatchedReads.read() reads Deno KV", async () => {
  using kv = await Deno.openKv(":memory:");
  for (let index = 0; index < 40; index++) await kv.set(["item", index], `value ${index}`);
  const reads = new BatchedReads(kv);
  const values = await Promise.all(
    Array.from({ length: 50 }, (_, index) => reads.read(["item", index])),
  );
  assertEquals(values.slice(0, 40), Array.from({ length: 40 }, (_, index) => `value ${index}`));
  assert(values.slice(40).every((value) => value === null));
});
