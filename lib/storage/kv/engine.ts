/**
 * A database in Deno KV.
 */

import type { Engine } from "../engine.ts";
import { KvCatalogue } from "./catalogue.ts";
import { openKv } from "./kv.ts";
import { KvLedger } from "./ledger.ts";

/**
 * Opens a database, and makes an empty one where there is none.
 *
 * @param location A path or a KV Connect URL; the platform's own KV without one.
 * @throws {StorageError} When it cannot be opened.
 */
export async function openEngine(location: string | undefined): Promise<Engine> {
  const kv = await openKv(location);
  return { catalogue: new KvCatalogue(kv), ledger: new KvLedger(kv), close: () => kv.close() };
}
