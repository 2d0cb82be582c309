/** The interface of engines. An engine keeps the catalogue and, beside it, the ledger. */

import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Ledger } from "../../usage/record/ledger.ts";

export interface Engine {
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  /**
   * Checks that a server could write to the ledger, without writing.
   *
   * @throws {StorageError} When it could not, and so would not start.
   */
  checkWriting(): Promise<void>;
  close(): Promise<void>;
}
