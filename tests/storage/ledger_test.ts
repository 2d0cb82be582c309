import { testLedger } from "./ledger_suite.ts";
import { openLocal } from "../support/local_storage.ts";
import { MemoryLedger } from "../../lib/storage/memory/ledger.ts";

testLedger("KvLedger", async () => {
  const subject = await openLocal();
  return {
    ledger: subject.storage.ledger,
    [Symbol.asyncDispose]: () => subject[Symbol.asyncDispose](),
  };
});

testLedger("MemoryLedger", () =>
  Promise.resolve({
    ledger: new MemoryLedger(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }));
