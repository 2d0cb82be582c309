/** The suites of every engine, on SQLite. */

import { openEngine } from "../../../../lib/storage/database/sqlite/engine.ts";
import { needing } from "../../../support/permissions.ts";
import { openMemoryEngine } from "../../../support/memory_storage.ts";
import { testLedger } from "../../ledger/ledger_suite.ts";
import { testExclusion } from "../exclusion_suite.ts";

testLedger("Ledger on SQLite", openMemoryEngine);

testExclusion("SQLite in memory", async () => {
  const engine = await openEngine("sqlite::memory:");
  return { engines: [engine], [Symbol.asyncDispose]: () => engine.close() };
});

testExclusion("SQLite", async () => {
  const folder = await Deno.makeTempDir({ prefix: "media-head-" });
  const open = () => openEngine(`sqlite:${folder}/catalogue.sqlite`);
  const engines = [await open(), await open(), await open()];
  return {
    engines,
    async [Symbol.asyncDispose]() {
      for (const engine of engines) await engine.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}, needing("files"));
