import { assertRejects } from "@std/assert";
import { unlessAborted } from "../../lib/async/abort.ts";

Deno.test("unlessAborted() leaves no rejection unhandled, before or after the signal", async () => {
  for (const isBefore of [true, false]) {
    const controller = new AbortController();
    const { promise, reject } = Promise.withResolvers<never>();
    const abort = () => controller.abort(new RangeError("aborted"));
    if (isBefore) abort();
    const waited = assertRejects(async () => {
      await unlessAborted(promise, controller.signal);
    }, RangeError);
    abort();
    await waited;
    reject(new Error("too late"));
    await new Promise((resolve) => setTimeout(resolve)); // an unhandled rejection would fail this test
  }
});
