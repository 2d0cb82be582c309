/**
 * Finding content that no item uses.
 */

import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ContentStore, ObjectStore } from "./content_store.ts";

/** Digests per lookup. */
const BATCH = 100;

/** Digests held back at most while they may be in publication. */
const MAX_WAITING = 10_000;

/**
 * Yields the digests of content that no item used, after giving publications in progress time to
 * finish. {@linkcode isUnused} tells whether it is still unused.
 */
export async function* unusedIn(
  { content, catalogue }: {
    readonly content: Pick<ContentStore, "list"> & Partial<Pick<ObjectStore, "settlingMs">>;
    readonly catalogue: Pick<Catalogue, "unused">;
  },
): AsyncGenerator<string> {
  const { settlingMs = 0 } = content;
  const waiting: { readonly digest: string; readonly until: number }[] = [];
  async function* settled(): AsyncGenerator<string> {
    for (const { digest, until } of waiting.splice(0)) {
      const left = until - performance.now();
      if (left > 0) await new Promise((resolve) => setTimeout(resolve, left));
      yield digest;
    }
  }
  for await (const digests of batchesOf(content.list(), BATCH)) {
    const unused = await catalogue.unused(digests);
    const until = performance.now() + settlingMs;
    waiting.push(...unused.map((digest) => ({ digest, until })));
    if (settlingMs === 0 || waiting.length > MAX_WAITING) yield* settled();
  }
  yield* settled();
}

/** Whether content is stored that no item uses and nobody is publishing. */
export function isUnused(
  { content, catalogue }: {
    readonly content: Pick<ContentStore, "compare" | "hold">;
    readonly catalogue: Pick<Catalogue, "uses">;
  },
  digest: string,
): Promise<boolean> {
  return content.hold([digest], async () => {
    if (await catalogue.uses(digest)) return false;
    const { state } = await content.compare({ digest, length: 0 }); // of whatever length
    return state !== "missing";
  });
}

/** Groups values into batches; the last may be smaller. */
async function* batchesOf<T>(values: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const value of values) {
    if (batch.push(value) < size) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}
