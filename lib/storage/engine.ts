/**
 * A database: it holds the catalogue and the ledger.
 */

import type { Catalogue } from "./catalogue.ts";
import type { Ledger } from "./ledger.ts";

/**
 * Runs an action as the only one with any of its keys, among all processes that use the same
 * database. It may use the database itself.
 */
export type Exclusively = <T>(keys: readonly string[], action: () => Promise<T>) => Promise<T>;

/** An open database. */
export interface Engine {
  readonly catalogue: Catalogue;
  /** Who calls the deprecated routes. */
  readonly ledger: Ledger;
  /** Keeps others with one of the same keys waiting; throws {@linkcode StorageError} when it cannot. */
  readonly exclusively: Exclusively;
  /** Lets go of everything held open. */
  close(): Promise<void>;
}
