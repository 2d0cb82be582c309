/**
 * Content that no item uses.
 */

import type { Catalogue } from "./catalogue.ts";
import type { ContentStore } from "./content.ts";

/** Digests that are looked up at once. */
const BATCH = 100;

/** Digests that wait at most until it shows whether they are being published. */
const MAX_WAITING = 10_000;

/**
 * The digests of content that no item used when that was looked up, and that has had time to be
 * published since. Whether it is still unused, {@linkcode ContentStore.isUnused} tells.
 */
export async function* unusedIn(
  content: Pick<ContentStore, "list" | "settling">,
  catalogue: Pick<Catalogue, "unused">,
): AsyncGenerator<string> {
  const { settling = 0 } = content;
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
    const until = performance.now() + settling;
    waiting.push(...unused.map((digest) => ({ digest, until })));
    if (settling === 0 || waiting.length > MAX_WAITING) yield* settled();
  }
  yield* settled();
}

/** So many values at a time; fewer at the end. */
async function* batchesOf<T>(values: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const value of values) {
    if (batch.push(value) < size) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}
