import { assertRejects } from "@std/assert";
import { unlessAborted } from "../../lib/async/abort.ts";

Deno.test("unlessAborted() leaves no rejection unhandled, before or after the signal", async () => {
  for (const isBefore of [true, false]) {
    const controller = new AbortController();
    const { promise, reject } = Promise.withResolvers<never>();
    if (isBefore) controller.abort(new RangeError("aborted"));
    const waited = assertRejects(() => unlessAborted(promise, controller.signal), RangeError);
    controller.abort(new RangeError("aborted"));
    await waited;
    reject(new Error("too late"));
    await new Promise((resolve) => setTimeout(resolve)); // an unhandled rejection would fail this test
  }
});
