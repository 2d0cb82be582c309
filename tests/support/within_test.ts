import { assertEquals, assertRejects } from "@std/assert";
import { until, within } from "./within.ts";

Deno.test("within() and until() end with an error that says what they waited for", async () => {
  const { promise } = Promise.withResolvers<void>();
  const signals: unknown[] = [];
  const options = { timeout: 1, process: { kill: (signal: unknown) => void signals.push(signal) } };
  await assertRejects(() => within("a word", promise, options), Error, "in vain for a word, for 0");
  assertEquals(signals, ["SIGKILL"]);
  await assertRejects(() => until("a sign", () => false, 1), Error, "in vain for a sign, for 0");
  await assertRejects(() => within("a word", Promise.reject(new Error("no"))), Error, "no");
  assertEquals(await within("a word", Promise.resolve(1), options), 1);
});
