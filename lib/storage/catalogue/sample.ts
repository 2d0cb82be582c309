/**
 * Random samples of items.
 */

import type { Catalogue } from "./catalogue.ts";
import type { CatalogueEntry } from "../item.ts";
import { newToken, type Token } from "../token.ts";

/** Random starting points at most, so that a large sample is read in runs. */
const STARTS = 100;

/**
 * Yields `size` random published items, or all if there are fewer. Tokens are random, so the items
 * after a random token are, too. The whole catalogue is read only for a large sample, or where most
 * entries are tombstones.
 *
 * @param size As many tokens are held in memory.
 */
export async function* sampleOf(
  catalogue: Pick<Catalogue, "list">,
  size: number,
): AsyncGenerator<[Token, CatalogueEntry]> {
  const taken = new Set<Token>();
  const run = Math.ceil(size / STARTS);
  while (taken.size < size) {
    const end = Math.min(taken.size + run, size);
    for await (const [token, entry] of listAround(catalogue, newToken())) {
      if (entry.state === "unpublished" || taken.has(token)) continue;
      taken.add(token);
      yield [token, entry];
      if (taken.size === end) break;
    }
    if (taken.size < end) return; // there are no more
  }
}

/** Lists everything after a token, and then the rest. */
async function* listAround(
  catalogue: Pick<Catalogue, "list">,
  start: Token,
): AsyncGenerator<[Token, CatalogueEntry]> {
  yield* catalogue.list(start);
  for await (const [token, entry] of catalogue.list()) {
    if (token > start) return;
    yield [token, entry];
  }
}
