/** The SQLite engine: the catalogue in one file. */

import type { OpenOptions } from "../../database/open_options.ts";
import type { SqlitePlace } from "../../database/place.ts";
import { SqliteDatabase } from "../../database/sqlite/database.ts";
import { DENO_RUNTIME } from "../../database/sqlite/deno_runtime.ts";
import { Catalogue, ITEM_COLUMNS } from "../catalogue/catalogue.ts";
import { CATALOGUE } from "../catalogue/schema.ts";
import { requireOwner } from "../owner.ts";
import type { Engine } from "./engine.ts";

const FIND = `SELECT ${ITEM_COLUMNS} FROM media_head_item WHERE token = $1`;
const VERSION = "SELECT version FROM media_head_catalogue";

/** Opens a database. Root keeps out of other users' files, and so out of the ledger beside it. */
export async function openEngine(
  { path, files }: SqlitePlace,
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
  return { catalogue, close: () => database.close() };
}
