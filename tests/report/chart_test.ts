import { assertEquals } from "@std/assert";
import { axisTicks } from "../../lib/report/chart.ts";

Deno.test("axisTicks() ends at the first round number no less than the maximum", () => {
  const rows: [max: number, ticks: number[]][] = [
    [0, [0, 1]],
    [1, [0, 1]],
    [2, [0, 1, 2]],
    [7, [0, 2, 4, 6, 8]],
    [10, [0, 2, 4, 6, 8, 10]],
    [11, [0, 5, 10, 15]],
    [100, [0, 20, 40, 60, 80, 100]],
    [101, [0, 50, 100, 150]],
    [1000, [0, 200, 400, 600, 800, 1000]],
    [123_456, [0, 50_000, 100_000, 150_000]],
  ];
  for (const [max, ticks] of rows) assertEquals(axisTicks(max), ticks, String(max));
});
