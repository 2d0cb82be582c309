/** The SQLite engine: the catalogue in one file, the ledger in another beside it. */

import type { OpenOptions } from "../../database/open_options.ts";
import type { SqlitePlace } from "../../database/place.ts";
import { SqliteDatabase } from "../../database/sqlite/database.ts";
import { DENO_RUNTIME } from "../../database/sqlite/deno_runtime.ts";
import { Catalogue, ITEM_COLUMNS } from "../catalogue/catalogue.ts";
import { CATALOGUE } from "../catalogue/schema.ts";
import { requireOwner } from "../owner.ts";
import { Ledger } from "../../usage/record/ledger.ts";
import { LEDGER_OPTIONS } from "../../usage/record/open_ledger.ts";
import type { Engine } from "./engine.ts";

const FIND = `SELECT ${ITEM_COLUMNS} FROM media_head_item WHERE token = $1`;
const VERSION = "SELECT version FROM media_head_catalogue";

/** Opens a database, and the ledger beside it. */
export async function openEngine(
  { path, ledgerPath, files }: SqlitePlace,
  { onCreate, ...options }: OpenOptions = {},
): Promise<Engine> {
  for (const file of files) await requireOwner(file, "DATABASE_URL"); // reading creates some
  const database = await SqliteDatabase.open(path, {
    ...options,
    onCreate: (name) => onCreate?.(`the ${name} ${JSON.stringify(path)} (DATABASE_URL)`),
    schema: CATALOGUE,
    runtime: DENO_RUNTIME,
    synchronous: "FULL",
    timeout: 30_000, // while another process publishes
  });
  const catalogue = new Catalogue(database, {
    find: (token) => database.read(FIND, token),
    version: async () => (await database.read(VERSION))?.["version"] as number,
    versionTtlMs: 100, // reading the version takes microseconds
  });
  try {
    const ledgerDatabase = await SqliteDatabase.open(
      ledgerPath,
      { ...options, ...LEDGER_OPTIONS, runtime: DENO_RUNTIME },
    );
    const close = async () => {
      await Promise.all([database.close(), ledgerDatabase.close()]);
    };
    const ledger = new Ledger(ledgerDatabase);
    const checkWriting = () => Promise.resolve(); // SQLite opens no file that it cannot write
    return { catalogue, ledger, checkWriting, close };
  } catch (error) {
    await database.close();
    throw error;
  }
}
