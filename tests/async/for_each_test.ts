import { assert, assertEquals, assertRejects } from "@std/assert";
import { forEach } from "../../lib/async/for_each.ts";

/** Yields the first numbers, and counts how many were requested. */
function numbers(count: number) {
  const state = { given: 0, isClosed: false };
  async function* generate() {
    try {
      while (state.given < count) yield await Promise.resolve(state.given++);
    } finally {
      state.isClosed = true;
    }
  }
  return { state, values: generate() };
}

const pause = () => new Promise<void>((resolve) => setTimeout(resolve));
const { signal } = new AbortController();

Deno.test("forEach() runs once for each value, with limited concurrency", async () => {
  for (const [count, concurrency] of [[0, 4], [3, 4], [50, 4], [5, 1]] as const) {
    const { state, values } = numbers(count);
    const seen: number[] = [];
    let [running, most] = [0, 0];
    await forEach(values, { concurrency, signal }, async (value) => {
      most = Math.max(most, ++running);
      assert(state.given - seen.length <= concurrency, "nothing is read ahead");
      await pause();
      seen.push(value);
      running--;
    });
    assertEquals(seen.sort((a, b) => a - b), Array.from({ length: count }, (_, index) => index));
    assertEquals([most, state.isClosed], [Math.min(count, concurrency), true]);
  }
});

Deno.test("forEach() rejects with the first fault, once actions in flight have ended", async () => {
  const { state, values } = numbers(1_000);
  const ended: number[] = [];
  const work = async (value: number) => {
    await pause();
    if (value === 5) throw new Error("five");
    await pause();
    ended.push(value);
  };
  await assertRejects(() => forEach(values, { concurrency: 3, signal }, work), Error, "five");
  assert(state.given < 12, `${state.given} were read`);
  assertEquals(ended.length, state.given - 1);
  assert(state.isClosed);
});

Deno.test("forEach() rejects with its signal's reason, even while no value arrives", async () => {
  const controller = new AbortController();
  const hanging = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  const options = { concurrency: 2, signal: controller.signal };
  const work = forEach(hanging, options, () => Promise.resolve());
  controller.abort(new Error("enough"));
  await assertRejects(() => work, Error, "enough");
});
