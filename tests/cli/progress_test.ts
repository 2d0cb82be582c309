import { assertEquals } from "@std/assert";
import { type Amount, describeProgress } from "../../lib/cli/progress.ts";

Deno.test("describeProgress() gives amounts, the average rate and the time left", () => {
  const rows: [amount: Amount, unit: string, seconds: number, text: string][] = [
    [{ done: 0, total: 20e6 }, "bytes", 5, "0% | 0.0/20.0 MB | 0.0 MB/s"],
    [
      { done: 5e6, total: 20e6 },
      "bytes",
      2.5,
      "25% | 5.0/20.0 MB | 2.0 MB/s | 8 s left",
    ],
    [
      { done: 30e6, total: 20e6 },
      "bytes",
      15,
      "100% | 30.0/20.0 MB | 2.0 MB/s | 0 s left",
    ], // it has grown
    [{ done: 5e6 }, "bytes", 2.5, "5.0 MB | 2.0 MB/s"],
    [{ done: 0, total: 0 }, "items", 2, "0 items | 0 items/s"],
    [
      { done: 1_234_567, total: 5_000_000 },
      "lines",
      61.35,
      "24% | 1,234,567/5,000,000 lines | 20,123 lines/s | 3 min 8 s left",
    ],
    [
      { done: 1, total: 36_001 },
      "items",
      1,
      "0% | 1/36,001 items | 1 items/s | 10 h 0 min left",
    ],
    [{ done: 7, note: "a\x1b[31m\nb" }, "items", 7, "7 items | 1 items/s | a\\u001b[31m\\u000ab"],
  ];
  for (const [amount, unit, seconds, text] of rows) {
    assertEquals(describeProgress(amount, unit, seconds), text);
  }
});
