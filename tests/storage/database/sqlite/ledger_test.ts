import { assert, assertEquals } from "@std/assert";
import type { UsageRow } from "../../../../lib/storage/ledger/records.ts";
import { openEngine } from "../../../../lib/storage/database/sqlite/engine.ts";
import { ROW } from "../../../support/counted_call.ts";

/** Runs something, and counts how often other tasks run meanwhile. */
async function turnsDuring(action: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const counting = (async () => {
    for (; !isOver; turns++) await new Promise((resolve) => setTimeout(resolve));
  })();
  await action();
  isOver = true;
  await counting;
  return turns - 1; // the last one came after it
}

Deno.test("Ledger on SQLite yields to requests during long work", async () => {
  const { ledger, close } = await openEngine("sqlite::memory:");
  const rows: UsageRow[] = Array.from({ length: 3_000 }, (_, index) => {
    return { ...ROW, client: `client-${index}`, calls: 1, first: 0, last: 0 };
  });
  const now = Date.parse("2028-01-01");
  const own = { server: "a", policies: {}, from: 0, until: now, sequence: 0 };
  await ledger.declare([own]);
  await ledger.add({ rows, until: now }, own);
  const works: [what: string, work: () => Promise<unknown>][] = [
    ["usage()", () => Array.fromAsync(ledger.usage(""))],
    ["forget()", () => ledger.forget("2028-01-01", now)],
  ];
  for (const [what, work] of works) {
    const turns = await turnsDuring(work);
    assert(turns >= 3, `${what} leaves ${turns} turns to others`);
  }
  assertEquals(await Array.fromAsync(ledger.usage("")), []);
  await close();
});
