import { openMemoryEngine } from "../../support/memory_storage.ts";
import { testLedger } from "./ledger_suite.ts";

testLedger("SqlLedger on SQLite", openMemoryEngine);
