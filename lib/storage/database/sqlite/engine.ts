/** The SQLite engine: the catalogue in one file, the ledger in another beside it. */

import type { Engine, Exclusively, OpenOptions } from "../engine.ts";
import { Catalogue, ITEM_COLUMNS } from "../../catalogue/catalogue.ts";
import { Ledger } from "../../ledger/ledger.ts";
import { withFileLock } from "../../file_lock.ts";
import { SerialQueue } from "../../../async/serial_queue.ts";
import { MEMORY, SqliteDatabase } from "./database.ts";
import { CATALOGUE, LEDGER } from "./schema.ts";

const FIND = `SELECT ${ITEM_COLUMNS} FROM item WHERE token = $1`;
const VERSION = "SELECT version FROM catalogue";

/**
 * Opens the database at a `sqlite:PATH` URL.
 *
 * @param url The ledger is at the same path with `-ledger` appended. With `-lock` appended, it is
 *   the path of a file that is locked while content in a bucket changes.
 */
export async function openEngine(
  url: string,
  { onCreate, ...options }: OpenOptions = {},
): Promise<Engine> {
  const path = url.replace(/^sqlite:/, "");
  const database = await SqliteDatabase.open(path, {
    ...options,
    onCreate: (name) => onCreate?.(`the ${name} ${JSON.stringify(path)} (DATABASE_URL)`),
    schema: CATALOGUE,
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
      path === MEMORY ? path : `${path}-ledger`,
      { ...options, schema: LEDGER, synchronous: "NORMAL", timeout: 1_000 }, // flushes retry
    );
    const close = async () => {
      await Promise.all([database.close(), ledgerDatabase.close()]);
    };
    const queue = new SerialQueue();
    const lock = {
      open: { write: true, create: true },
      name: `the lock ${JSON.stringify(`${path}-lock`)} (DATABASE_URL)`,
      driver: "sqlite",
    };
    const exclusively: Exclusively = (action) =>
      queue.run(() =>
        path === MEMORY ? action() : withFileLock(`${path}-lock`, lock, options, action)
      );
    return { catalogue, ledger: new Ledger(ledgerDatabase), exclusively, close };
  } catch (error) {
    await database.close();
    throw error;
  }
}
