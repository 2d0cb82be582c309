import { testLedger } from "./ledger_suite.ts";
import { openEngine } from "../../lib/storage/sqlite/engine.ts";
import { MemoryLedger } from "../../lib/storage/memory/ledger.ts";

testLedger("SqlLedger on SQLite", async () => {
  const { ledger, close } = await openEngine("sqlite::memory:");
  return {
    ledger,
    [Symbol.asyncDispose]: close,
  };
});

testLedger("MemoryLedger", () =>
  Promise.resolve({
    ledger: new MemoryLedger(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }));
