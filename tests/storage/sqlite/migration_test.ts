import { DatabaseSync } from "node:sqlite";
import { openEngine } from "../../../lib/storage/sqlite/engine.ts";
import { CATALOGUE } from "../../../lib/storage/sqlite/schema.ts";
import { inFolder } from "../../support/media_cli.ts";
import { needing } from "../../support/permissions.ts";
import { checkMigrated, RECORDS_OF_VERSION_1 } from "../linked_item_suite.ts";

needing("files")(
  "a SQLite catalogue of version 1 keeps its items, and accepts items at URLs",
  () =>
    inFolder(async (folder) => {
      const path = `${folder}/catalogue.sqlite`;
      const old = new DatabaseSync(path);
      old.exec(CATALOGUE.steps[0] as string);
      old.exec(RECORDS_OF_VERSION_1);
      old.exec(`PRAGMA application_id = ${CATALOGUE.applicationId}; PRAGMA user_version = 1`);
      old.close();
      const { catalogue, close } = await openEngine(`sqlite:${path}`);
      await checkMigrated(catalogue);
      await close();
    }),
);
