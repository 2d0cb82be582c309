import { createHandler } from "../../main.ts";
import { openMemory } from "../support/memory_storage.ts";
import {
  CONFIG,
  publishTableItems,
  requestTable,
  runRow,
  seen,
  type Send,
} from "./request_table.ts";

Deno.test("createHandler() answers the whole table, HEAD like GET", async (t) => {
  await using subject = openMemory();
  const rows = requestTable(await publishTableItems(subject));
  const now = () => Date.parse("2026-11-21T12:00:00Z");
  const handle = createHandler({ storage: subject.storage, config: CONFIG, now, log() {} });
  const send: Send = async (method, target, fields) => {
    const url = URL.canParse(target) ? target : `http://test${target}`;
    return await seen(await handle(new Request(url, { method, headers: fields })));
  };
  for (const row of rows) await t.step(row.what, () => runRow(row, send));
});
