/**
 * A database: it holds the catalogue and the ledger.
 */

import type { Catalogue } from "./catalogue.ts";
import type { Ledger } from "./ledger.ts";

/** An open database. */
export interface Engine {
  readonly catalogue: Catalogue;
  /** Who calls the deprecated routes. */
  readonly ledger: Ledger;
  /** Lets go of everything held open. */
  close(): Promise<void>;
}
