/**
 * A database: it holds the catalogue and the ledger.
 */

import type { Catalogue } from "./catalogue.ts";
import type { Ledger } from "./ledger.ts";

/**
 * Runs an action as the only one with its key, among all processes that use the same database. It
 * may use the database itself.
 */
export type Exclusively = <T>(key: string, action: () => Promise<T>) => Promise<T>;

/** An open database. */
export interface Engine {
  readonly catalogue: Catalogue;
  /** Who calls the deprecated routes. */
  readonly ledger: Ledger;
  /** Keeps others with the same key waiting; throws {@linkcode StorageError} when it cannot. */
  readonly exclusively: Exclusively;
  /** Lets go of everything held open. */
  close(): Promise<void>;
}
