/** The suites of every engine, on SQLite. */

import { openEngine } from "../../../../lib/storage/database/sqlite/engine.ts";
import { inFolder } from "../../../support/media_cli.ts";
import { needing } from "../../../support/permissions.ts";
import { openMemoryEngine } from "../../../support/memory_storage.ts";
import { testLedger } from "../../ledger/ledger_suite.ts";
import { testExclusion } from "../exclusion_suite.ts";

testLedger("Ledger on SQLite", openMemoryEngine);

const withUrl = (body: (url: string) => Promise<void>) =>
  inFolder((folder) => body(`sqlite:${folder}/catalogue.sqlite`));
testExclusion("SQLite", withUrl, openEngine, needing("processes"));
