import { assertEquals } from "@std/assert";
import { usageCsv } from "../../lib/cli/usage_csv.ts";
import { MemoryLedger } from "../../lib/storage/memory/ledger.ts";
import { row } from "../support/usage_report.ts";

Deno.test("usageCsv() quotes cells where needed, and escapes spreadsheet formulas", async () => {
  const ledger = new MemoryLedger();
  await ledger.add(["curl", "+1,2", 'a"b', "-x"].map((client) => row(0, client, 1)), () => {});
  const csv = await Array.fromAsync(usageCsv(ledger.usage("")));
  assertEquals(csv[0], "day,route,method,phase,status,impact,client,calls,first,last");
  assertEquals(
    csv[1],
    "2027-06-15,/audio/:token,HEAD,deprecated,2xx,breaking,curl,1,2027-06-15T12:00:00.000Z,2027-06-15T13:00:00.000Z",
  );
  assertEquals(csv.slice(2).map((row) => row.split("breaking,")[1]?.split(",1,2027")[0]), [
    `"'+1,2"`,
    '"a""b"',
    "'-x",
  ]);
});
