/** The interface of engines, which hold the catalogue and the ledger. */

import type { Ledger } from "../../usage/ledger.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";

export interface Engine {
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  close(): Promise<void>;
}
