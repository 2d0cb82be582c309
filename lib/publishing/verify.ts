/** Verifying that storage has exactly what the catalogue says. */

import { type Patience, unlessAborted } from "../async/abort.ts";
import { forEach } from "../async/for_each.ts";
import { RefusedError } from "../errors/refused_error.ts";
import { StorageError } from "../errors/storage_error.ts";
import { messageOf } from "../input/printable.ts";
import type { Comparison } from "../storage/content/content_store.ts";
import { ReplacedError, UnpublishedError } from "../storage/errors.ts";
import type { CatalogueEntry } from "../storage/item.ts";
import type { MediaStorage } from "../storage/media/media_storage.ts";
import type { Token } from "../storage/token.ts";
import { compareUrl } from "./compare_url.ts";
import { hashOf } from "./publish.ts";
import { readContent } from "./publish_object.ts";

/** The number of items checked at once, each on its own connection if it needs one. */
const CONCURRENCY = 16;

/** The number of consecutive failures after which a host gets no more requests. */
const MAX_FAILURES = 50;

/** The outcome of an item, or the digest of unused content. */
export type Verification =
  | { readonly token: Token; readonly entry: PublishedEntry; readonly outcome: Comparison }
  | { readonly unused: string };

/** The entry of a published item. */
type PublishedEntry = Exclude<CatalogueEntry, { state: "unpublished" }>;

export interface VerifyOptions extends Patience {
  /** Whether to leave public URLs out. */
  readonly withoutUrls?: boolean | undefined;
  /** Whether to read content and compare its digest. */
  readonly withContent?: boolean | undefined;
  readonly signal: AbortSignal;
  /** Called for each verification, and awaited. */
  readonly onVerified: (verification: Verification) => Promise<void>;
  /** Called with the token of each finished entry, and with `undefined` after the last one. */
  readonly onProgress?: (token: Token | undefined) => void;
}

/**
 * Compares published items with the content in storage and at public URLs. Uses no cached results.
 * An item that is published or unpublished meanwhile is not a difference.
 *
 * @param storage Must be prepared, unless it has no content.
 */
export async function verify(storage: MediaStorage, options: VerifyOptions): Promise<void> {
  const { withoutUrls, signal, onVerified, onProgress = () => {} } = options;
  const work = { concurrency: CONCURRENCY, signal };
  const failures = new Map<string, number>(); // by host
  await forEach(storage.catalogue.list(), work, async ([token, entry]) => {
    const host = entry.state === "linked" ? new URL(entry.item.location).host : undefined;
    if (entry.state !== "unpublished" && !(withoutUrls && host !== undefined)) {
      const outcome = host !== undefined && (failures.get(host) ?? 0) >= MAX_FAILURES
        ? {
          state: "failed",
          reason: `${host} failed ${MAX_FAILURES} times in a row, so it gets no more requests`,
        } as const
        : await check(storage, token, entry, options);
      if (outcome !== undefined) await onVerified({ token, entry, outcome });
      const isFailed = outcome?.state === "failed";
      if (host !== undefined) failures.set(host, isFailed ? (failures.get(host) ?? 0) + 1 : 0);
    }
    onProgress(token);
  });
  onProgress(undefined);
  await forEach(storage.content.list(), work, async (digest) => {
    if (await unlessAborted(storage.isUnused(digest), signal)) await onVerified({ unused: digest });
  });
}

/** Checks an item; returns `undefined` if it was unpublished meanwhile. */
async function check(
  storage: MediaStorage,
  token: Token,
  entry: PublishedEntry,
  options: VerifyOptions,
): Promise<Comparison | undefined> {
  const outcome = await compare(storage, entry, options);
  if (outcome.state === "same") return outcome;
  const { state } = await storage.catalogue.find(token);
  if (state !== entry.state) return undefined;
  // If storage as a whole fails, the item is not at fault.
  if (state === "published") await unlessAborted(storage.check(), options.signal);
  return outcome;
}

async function compare(
  storage: MediaStorage,
  entry: PublishedEntry,
  { withContent = false, signal, onWait }: VerifyOptions,
): Promise<Comparison> {
  try {
    if (entry.state === "linked") return await compareUrl(entry.item, { signal, onWait });
    const { item } = entry;
    const comparison = await unlessAborted(storage.content.compare(item), signal);
    if (comparison.state === "different" && item.location !== undefined) {
      const remedy = "if only its ETag is new, import its line again";
      return { ...comparison, reason: `${comparison.reason}; ${remedy}` };
    }
    if (comparison.state !== "same" || !withContent) return comparison;
    const { digest } = await hashOf(readContent(storage.open(item), signal));
    if (digest === item.digest) return comparison;
    return { state: "different", reason: `content ${item.digest} has the SHA-256 ${digest}` };
  } catch (error) {
    if (error instanceof RefusedError || error instanceof UnpublishedError) {
      return { state: "failed", reason: messageOf(error) };
    }
    if (!(error instanceof StorageError)) throw error;
    const state = error instanceof ReplacedError ? "different" : "failed";
    return { state, reason: messageOf({ message: error.fault, cause: error.cause }) };
  }
}
