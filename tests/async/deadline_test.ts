import { assertEquals, assertRejects } from "@std/assert";
import { fulfilledWithin } from "../../lib/async/deadline.ts";

Deno.test("fulfilledWithin() returns whether a promise was fulfilled in time, and waits no longer", async () => {
  const never = new Promise(() => {});
  assertEquals(await fulfilledWithin(60_000, Promise.resolve("x")), true);
  assertEquals(await fulfilledWithin(1, never), false);
  await assertRejects(() => fulfilledWithin(60_000, Promise.reject(new Error("x"))), Error, "x");
});

Deno.test("fulfilledWithin() ignores a late rejection", async () => {
  const { promise, reject } = Promise.withResolvers();
  assertEquals(await fulfilledWithin(1, promise), false);
  reject(new Error("too late"));
  await new Promise((resolve) => setTimeout(resolve)); // an unhandled rejection would fail this test
});
