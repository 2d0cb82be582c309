import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { andThen, attempt } from "../../lib/http/awaitable.ts";

const fail = (): never => {
  throw new Error("expected");
};

Deno.test("andThen() continues synchronously with a value, and asynchronously with a promise", async () => {
  const double = (value: number) => value * 2;
  assertEquals(andThen(21, double), 42);
  const later = andThen(Promise.resolve(21), double);
  assertEquals([later instanceof Promise, await later], [true, 42]);
  assertEquals(await andThen(21, (value) => Promise.resolve(double(value))), 42);
  assertThrows(() => andThen(21, fail), Error, "expected");
  await assertRejects(async () => await andThen(Promise.resolve(21), fail), Error, "expected");
});

Deno.test("attempt() recovers from an exception and from a rejection", async () => {
  const messageOf = (error: unknown) => (error as Error).message;
  assertEquals(attempt(() => "there", messageOf), "there");
  assertEquals(await attempt(() => Promise.resolve("there"), messageOf), "there");
  assertEquals(attempt<string>(fail, messageOf), "expected");
  const later = attempt<string>(() => Promise.resolve().then(fail), messageOf);
  assertEquals([later instanceof Promise, await later], [true, "expected"]);
  assertThrows(() => attempt(fail, fail), Error, "expected");
});
