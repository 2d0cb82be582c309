import { assertEquals } from "@std/assert";
import { Backlog } from "../../../lib/usage/record/backlog.ts";
import { MAX_PART_ROWS } from "../../../lib/usage/record/records.ts";
import { COUNT } from "../../support/counted_call.ts";

Deno.test("Backlog sums the counts of each key, and gives them in parts", () => {
  const backlog = new Backlog();
  assertEquals([backlog.isEmpty, backlog.calls, backlog.takePart()], [true, 0, []]);
  const clients = Array.from({ length: MAX_PART_ROWS + 1 }, (_, index) => `app ${index}`);
  for (const calls of [1, 2]) {
    backlog.add(clients.map((client) => ({ ...COUNT, client, calls })));
  }
  assertEquals([backlog.isEmpty, backlog.calls], [false, 3 * clients.length]);
  const sums = clients.map((client) => ({ ...COUNT, client, calls: 3 }));
  assertEquals(backlog.takePart(), sums.slice(0, MAX_PART_ROWS));
  assertEquals([backlog.isEmpty, backlog.calls], [false, 3]);
  assertEquals(backlog.takePart(), sums.slice(MAX_PART_ROWS));
  assertEquals([backlog.isEmpty, backlog.calls, backlog.takePart()], [true, 0, []]);
});
