/**
 * Items at random.
 */

import type { Catalogue } from "./catalogue.ts";
import type { CatalogueEntry } from "./storage.ts";
import { newToken, type Token } from "./token.ts";

/** Random tokens at most from which items are read on, so that a large sample is read in runs. */
const STARTS = 100;

/**
 * So many published items at random, or all if there are no more. Tokens are random, and so is what
 * follows a random one: only a large part of a catalogue, or one full of tombstones, is read whole.
 *
 * @param size Tokens of as many items are held in memory.
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
    if (taken.size < end) return; // there are no others
  }
}

/** Everything after a token, and then the rest. */
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
