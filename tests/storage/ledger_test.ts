import { testLedger } from "./ledger_suite.ts";
import { openEngine } from "../../lib/storage/kv/engine.ts";
import { MemoryLedger } from "../../lib/storage/memory/ledger.ts";

testLedger("KvLedger", async () => {
  const { ledger, close } = await openEngine(":memory:");
  return {
    ledger,
    [Symbol.asyncDispose]: () => Promise.resolve(close()),
  };
});

testLedger("MemoryLedger", () =>
  Promise.resolve({
    ledger: new MemoryLedger(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }));
