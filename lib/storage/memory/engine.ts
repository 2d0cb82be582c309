/**
 * The in-memory engine, for tests and for servers without a database.
 */

import type { Engine } from "../engine.ts";
import { SerialQueue } from "../serial_queue.ts";
import { MemoryCatalogue } from "./catalogue.ts";
import { MemoryLedger } from "./ledger.ts";

/** Opens an empty database, which lasts as long as its object. */
export function openEngine(_url?: string): Engine {
  const catalogue = new MemoryCatalogue();
  const queue = new SerialQueue();
  return {
    catalogue,
    ledger: new MemoryLedger(),
    exclusively: (_keys, action) => queue.run(action),
    close: () => Promise.resolve(catalogue.close()),
  };
}
