/** The interface of engines. An engine keeps the catalogue. */

import type { Catalogue } from "../catalogue/catalogue.ts";

export interface Engine {
  readonly catalogue: Catalogue;
  close(): Promise<void>;
}
