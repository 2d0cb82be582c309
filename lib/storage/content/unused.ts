/** Finding content that no item uses. */

import type { Catalogue } from "../catalogue/catalogue.ts";
import type { ContentStore, ObjectStore } from "./content_store.ts";

/** The number of digests in a lookup. */
const BATCH = 1_000;

/**
 * Yields the digests of content that no item uses, and gives publications in progress time to
 * finish first. {@linkcode isUnused} checks whether the content is still unused.
 */
export async function* unusedIn(
  { content, catalogue }: {
    readonly content: Pick<ContentStore, "list"> & Partial<Pick<ObjectStore, "settlingMs">>;
    readonly catalogue: Pick<Catalogue, "unused">;
  },
): AsyncGenerator<string> {
  const { settlingMs = 0 } = content;
  for await (const digests of batchesOf(content.list(), BATCH)) {
    const unused = await catalogue.unused(digests);
    if (unused.length > 0) await new Promise((resolve) => setTimeout(resolve, settlingMs));
    yield* unused;
  }
}

/** Whether content is stored that no item uses and nobody is publishing. */
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
