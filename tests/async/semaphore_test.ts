import { assertEquals, assertRejects } from "@std/assert";
import { Semaphore } from "../../lib/async/semaphore.ts";

const never = new AbortController().signal;

Deno.test("Semaphore.acquire() admits a limited number at once, and the others in order", async () => {
  const semaphore = new Semaphore(2);
  const [first, second] = [await semaphore.acquire(never), await semaphore.acquire(never)];
  const entered: number[] = [];
  const waiting = [3, 4, 5].map(async (number) => {
    const release = await semaphore.acquire(never);
    entered.push(number);
    return release;
  });
  await Promise.resolve();
  assertEquals(entered, []);
  first();
  (await waiting[0])?.();
  (await waiting[1])?.();
  assertEquals(entered, [3, 4]);
  second();
  (await waiting[2])?.();
  const again = await Promise.all([semaphore.acquire(never), semaphore.acquire(never)]);
  again.forEach((release) => release());
});

Deno.test("Semaphore.acquire() rejects when aborted, and loses no place", async () => {
  const semaphore = new Semaphore(1);
  const release = await semaphore.acquire(never);
  const controller = new AbortController();
  const waiting = semaphore.acquire(controller.signal);
  const other = semaphore.acquire(never);
  controller.abort(new RangeError("no longer"));
  await assertRejects(() => waiting, RangeError);
  await assertRejects(() => semaphore.acquire(controller.signal), RangeError);
  release();
  (await other)();
  (await semaphore.acquire(never))();
});
