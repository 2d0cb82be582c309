/** The interface of engines. An engine keeps the catalogue and, beside it, the ledger. */

import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Ledger } from "../../usage/record/ledger.ts";

export interface Engine {
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  close(): Promise<void>;
}
