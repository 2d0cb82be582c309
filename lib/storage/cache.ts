/**
 * A bounded memory of look-ups. Another process may publish and unpublish at any time and cannot
 * tell this one, so what is remembered is believed for a limited time only.
 */

import { LRUCache } from "lru-cache";
import type { ByteRange } from "../http/byte_range.ts";
import type { Token } from "../http/token.ts";
import type { Finding, PublishedItem, Storage } from "./storage.ts";

/** Tokens remembered at most, known or not. About 1 kB each. */
const MAX_ENTRIES = 10_000;

/** How long look-ups are believed, and by which clock. */
export interface CacheOptions {
  /** Milliseconds, at least 1. */
  readonly ttl: number;
  /** Milliseconds, from any start, never going back. */
  readonly now?: () => number;
}

/** Storage whose look-ups are remembered, and shared while they are under way. Faults are not. */
export class CachedStorage implements Storage {
  readonly #storage: Storage;
  readonly #findings: LRUCache<Token, Finding>;

  constructor(storage: Storage, { ttl, now = () => performance.now() }: CacheOptions) {
    this.#storage = storage;
    this.#findings = new LRUCache({
      max: MAX_ENTRIES,
      ttl,
      ttlResolution: 0, // ask the clock each time: the cache's own timer would keep a process up
      perf: { now },
      fetchMethod: (token) => storage.find(token),
    });
  }

  /** @inheritdoc */
  async find(token: Token): Promise<Finding> {
    return this.#findings.get(token) ?? await this.#findings.forceFetch(token);
  }

  /** @inheritdoc */
  async open(item: PublishedItem, range?: ByteRange) {
    try {
      return await this.#storage.open(item, range);
    } catch (error) {
      this.#findings.delete(item.token); // what was remembered proved wrong
      throw error;
    }
  }

  /** @inheritdoc */
  check(): Promise<void> {
    return this.#storage.check();
  }

  /** @inheritdoc */
  close(): void {
    this.#storage.close();
  }
}
