/** The suites of every engine, on SQLite. */

import { assert, assertEquals } from "@std/assert";
import { COUNT, DAY, NOON } from "../../support/counted_call.ts";
import { ledgerAt, openLedgerDatabase } from "../../support/ledger_at.ts";
import { begin } from "../../support/ledger_rows.ts";
import { testLedger } from "../../usage/record/ledger_suite.ts";

testLedger("Ledger on SQLite", openLedgerDatabase);

Deno.test("Ledger on SQLite yields to requests during long work", async () => {
  await using database = await openLedgerDatabase();
  const ledger = ledgerAt(database, () => NOON + DAY);
  const clients = Array.from({ length: 3_000 }, (_, index) => `client-${index}`);
  const counts = clients.map((client) => ({ ...COUNT, client, calls: 1 }));
  await ledger.add({ counts, at: NOON }, await begin(ledger), Infinity);
  const rows = () => Array.fromAsync(ledger.usage(""));
  for (const work of [rows, () => ledger.forget("2027-02-02", NOON + 2 * DAY)]) {
    let turns = 0;
    const counting = setInterval(() => turns++);
    await work();
    clearInterval(counting);
    assert(turns >= 3, `${work} leaves ${turns} turns to others`);
  }
  assertEquals(await rows(), []);
});
