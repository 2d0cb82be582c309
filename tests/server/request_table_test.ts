import { CachedStorage } from "../../lib/storage/cache.ts";
import { plainHandler } from "../support/handlers.ts";
import { openMemory } from "../support/memory_storage.ts";
import { CONFIG, publishTableItems, requestTable, runRow, sendTo } from "./request_table.ts";

Deno.test("the handler answers the whole table, HEAD like GET", async (t) => {
  await using subject = await openMemory();
  const now = () => Date.parse("2026-11-21T12:00:00Z");
  const storage = new CachedStorage(subject.storage, subject.storage.catalogue, now);
  const handle = plainHandler({ storage, config: CONFIG, clock: now, log() {} });
  const send = sendTo(handle);
  for (const row of requestTable(await publishTableItems(subject))) {
    await t.step(row.what, () => runRow(row, send));
  }
});
