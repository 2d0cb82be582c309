/** Storage with one item, which succeeds and fails as a test wants, and records its calls. */

import { spy } from "@std/testing/mock";
import { StorageError } from "../../lib/errors/storage_error.ts";
import type { LookupResult } from "../../lib/storage/item.ts";
import type { CacheableStorage, ItemStorage } from "../../lib/storage/storage.ts";
import type { Token } from "../../lib/storage/token.ts";
import { newMetadata } from "../storage/storage_suite.ts";

/** Storage that finds one item under every token, and lacks its content. */
export class OneItem implements ItemStorage, CacheableStorage {
  readonly item = { ...newMetadata(), digest: "ab".repeat(32), length: 1000 };
  /** What lookups return. */
  result: LookupResult = { state: "published", kind: "audio", item: this.item };

  /** Changes with every publication. */
  currentVersion = 0;
  readonly versionTtlMs: number = 1_000;

  readonly find;
  readonly open;
  readonly check;

  /** @param methods Overrides. */
  constructor({
    find = () => Promise.resolve(this.result),
    open = fails(missing),
    check = () => Promise.resolve(),
  }: Partial<Pick<ItemStorage, "find" | "open" | "check">> = {}) {
    this.find = spy(find);
    this.open = spy(open);
    this.check = spy(check);
  }

  readonly isBilled = false;

  lookUp(token: Token): Promise<LookupResult> {
    return this.find(token, 0);
  }

  version(): Promise<number> {
    return Promise.resolve(this.currentVersion);
  }
}

const missing = new StorageError("test", "content is missing");

/** Storage whose every method fails. */
export function failing(error: Error): OneItem {
  return new OneItem({ find: fails(error), open: fails(error), check: fails(error) });
}

/** A method that fails. */
export function fails(error: Error): () => Promise<never> {
  return () => Promise.reject(error);
}
