/** Progress where standard error is no terminal. On a terminal: import_test.ts. */

import { assertEquals } from "@std/assert";
import { stub } from "@std/testing/mock";
import { showLongProgress, showProgress } from "../../lib/cli/progress.ts";

Deno.test("showLongProgress() writes a line a minute into a pipe, and showProgress() none", () => {
  let [now, written] = [0, ""];
  using _now = stub(performance, "now", () => now);
  using _terminal = stub(Deno.stderr, "isTerminal", () => false);
  using _write = stub(Deno.stderr, "writeSync", (bytes) => {
    written += new TextDecoder().decode(bytes);
    return bytes.length;
  });
  for (const second of [0, 59, 60, 61, 119, 120, 500]) {
    now = second * 1_000;
    showLongProgress(`${second} lines`, second / 1_000);
    showProgress("items");
  }
  showLongProgress("the same moment");
  assertEquals(
    written,
    "media: 6% | 60 lines\nmedia: 12% | 120 lines\nmedia: 50% | 500 lines\n",
  );
});

Deno.test("showLongProgress() goes on if nothing can be written", () => {
  using _now = stub(performance, "now", () => 10_000_000);
  using _terminal = stub(Deno.stderr, "isTerminal", () => false);
  using _write = stub(Deno.stderr, "writeSync", () => {
    throw new Deno.errors.BrokenPipe("closed");
  });
  showLongProgress("many lines");
});
