/** Finding content that no item uses. */

import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ContentStore } from "./content_store.ts";

/** The number of digests in a lookup. */
const BATCH = 1_000;

/**
 * Yields the digests of content that no item uses. {@linkcode isUnused} checks whether it is still
 * unused.
 */
export async function* unusedIn(
  { content, catalogue }: {
    readonly content: Pick<ContentStore, "list">;
    readonly catalogue: Pick<Catalogue, "unused">;
  },
): AsyncGenerator<string> {
  for await (const digests of batchesOf(content.list(), BATCH)) {
    yield* await catalogue.unused(digests);
  }
}

/** Whether content is stored that no item uses. In a folder, it waits for whoever publishes it. */
export function isUnused(
  { content, catalogue }: {
    readonly content: Pick<ContentStore, "compare" | "hold">;
    readonly catalogue: Pick<Catalogue, "uses">;
  },
  digest: string,
): Promise<boolean> {
  return content.hold(async () => {
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
