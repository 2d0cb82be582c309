/** The interface of databases, which hold the catalogue and the ledger. */

import type { Patience } from "../../async/abort.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Ledger } from "../ledger/ledger.ts";

/** How to open a database. The signal ends a wait for a lock, also after opening. */
export interface OpenOptions extends Patience {
  /** Whether to refuse a database without a catalogue, rather than create one. */
  readonly mustExist?: boolean;
  /** Called with the name of a catalogue that was created. */
  readonly onCreate?: (what: string) => void;
}

/** Why a database that must exist is refused. */
export const NONE_YET = "There is none yet: expected one that start, publish or import has created";

export interface Engine {
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  close(): Promise<void>;
}
