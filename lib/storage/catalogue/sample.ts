/**
 * Random samples of items.
 */

import type { Catalogue } from "./catalogue.ts";
import type { CatalogueEntry } from "../item.ts";
import { newToken, type Token } from "../token.ts";

/**
 * Yields `size` random published items, or all if there are fewer. Tokens are random, so the items
 * after a random token are, too. The whole catalogue is read only for a large sample, or where most
 * entries are tombstones.
 */
export async function* sampleOf(
  catalogue: Pick<Catalogue, "list">,
  size: number,
): AsyncGenerator<[Token, CatalogueEntry]> {
  const start = newToken();
  let left = size;
  for (const after of [start, undefined]) { // the rest last
    for await (const [token, entry] of catalogue.list(after)) {
      if (after === undefined && token > start) return;
      if (entry.state === "unpublished") continue;
      yield [token, entry];
      if (--left === 0) return;
    }
  }
}
