/**
 * Verifying: whether storage has what the catalogue says it has, and nothing else.
 */

import type { Comparison } from "../storage/content.ts";
import type { MediaStorage } from "../storage/media_storage.ts";
import {
  type CatalogueEntry,
  type LinkedItem,
  type PublishedItem,
  ReplacedError,
  StorageError,
  UnpublishedError,
} from "../storage/storage.ts";
import type { Token } from "../storage/token.ts";
import { unlessAborted } from "./abort.ts";
import { compareUrl } from "./compare_url.ts";
import { forEach } from "./for_each.ts";
import { printable } from "./printable.ts";
import { RefusedError, sha256Of } from "./publish.ts";
import { readAll } from "./publish_object.ts";

/** Items that are checked at once, each on a connection of its own where it takes one. */
const CONCURRENCY = 16;

/** Failures in a row after which checking more is of no use. */
const MAX_FAILURES = 100;

/** How an item compares with what storage has; it failed when that could not be found out. */
export type CheckOutcome = Comparison | { readonly state: "failed"; readonly reason: string };

/** What was found: of an item, or that no item uses some content. */
export type Verification =
  | { readonly token: Token; readonly entry: PublishedEntry; readonly outcome: CheckOutcome }
  | { readonly unused: string };

/** What the catalogue has on record of an item that is published. */
type PublishedEntry = Exclude<CatalogueEntry, { state: "unpublished" }>;

/** How to verify. */
export interface VerifyOptions {
  /** Verifies only so many items, at random, and looks for no content that no item uses. */
  readonly sample?: number | undefined;
  /** Whether content is read, for its digest. */
  readonly withContent?: boolean | undefined;
  /** Ends the work. */
  readonly signal: AbortSignal;
  /** Is told each verdict, and waited for. */
  readonly report: (verification: Verification) => Promise<void>;
  /** Is told the token of each entry that is done with; `undefined` when all of them are. */
  readonly onProgress?: (token: Token | undefined) => void;
}

/**
 * Compares what is published with what storage and the public URLs have now, whatever they had when
 * they were asked before. What is published or unpublished meanwhile is no difference.
 *
 * @param storage Prepared, unless it is to have no content.
 * @throws {StorageError} When storage as a whole fails.
 * @throws {RefusedError} When a hundred items in a row cannot be checked.
 * @throws What aborted the signal.
 */
export async function verify(storage: MediaStorage, options: VerifyOptions): Promise<void> {
  const { sample, signal, report, onProgress = () => {} } = options;
  const work = { concurrency: CONCURRENCY, signal };
  let failures = 0;
  const entries = sample === undefined ? storage.list() : storage.sample(sample);
  await forEach(entries, work, async ([token, entry]) => {
    const outcome = entry.state === "unpublished"
      ? undefined
      : await check(storage, token, entry, options);
    if (outcome !== undefined) {
      await report({ token, entry: entry as PublishedEntry, outcome });
      failures = outcome.state === "failed" ? failures + 1 : 0;
      if (failures >= MAX_FAILURES) {
        throw new RefusedError(`Given up after ${failures} items in a row that cannot be checked`);
      }
    }
    onProgress(token);
  });
  onProgress(undefined);
  if (sample !== undefined) return;
  await forEach(storage.listUnused(), work, async (digest) => {
    const isUnused = await unlessAborted(storage.isUnused(digest), signal);
    if (isUnused) await report({ unused: digest });
  });
}

/** Checks an item; gives nothing when it is published no more. */
async function check(
  storage: MediaStorage,
  token: Token,
  entry: PublishedEntry,
  options: VerifyOptions,
): Promise<CheckOutcome | undefined> {
  const outcome = entry.state === "linked"
    ? await checkUrl(entry.item, options)
    : await checkContent(storage, entry.item, options);
  if (outcome.state === "same") return outcome;
  const { state } = await storage.lookUp(token);
  if (state !== entry.state) return undefined;
  // Where the place as a whole fails, that is no fault of the item.
  if (state === "published") await unlessAborted(storage.check(), options.signal);
  return outcome;
}

async function checkUrl(item: LinkedItem, { signal }: VerifyOptions): Promise<CheckOutcome> {
  try {
    return await compareUrl(item, { signal });
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    return { state: "failed", reason: error.message + because(error) };
  }
}

async function checkContent(
  storage: MediaStorage,
  item: PublishedItem,
  { withContent = false, signal }: VerifyOptions,
): Promise<CheckOutcome> {
  try {
    const comparison = await unlessAborted(storage.compare(item), signal);
    if (comparison.state !== "same" || !withContent) return comparison;
    const digest = await sha256Of(readAll({ open: () => storage.open(item) }, signal));
    if (digest === item.digest) return comparison;
    return { state: "different", reason: `content ${item.digest} has the SHA-256 ${digest}` };
  } catch (error) {
    if (error instanceof UnpublishedError) return { state: "failed", reason: error.message };
    if (!(error instanceof StorageError)) throw error;
    const state = error instanceof ReplacedError ? "different" : "failed";
    return { state, reason: error.fault + because(error) };
  }
}

function because({ cause }: Error): string {
  return cause instanceof Error ? ` (${printable(cause.message)})` : "";
}
