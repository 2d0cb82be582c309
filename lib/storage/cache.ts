/** A bounded cache of lookups. */

import type { Body } from "../http/outcome.ts";
import type { ByteRange } from "../http/byte_range.ts";
import { Generations, type Versioned } from "./generations.ts";
import { StorageError } from "./errors.ts";
import type { Token } from "./token.ts";
import type { LookupResult, PublishedItem } from "./item.ts";
import type { ItemStorage } from "./storage.ts";

/** The number of tokens to cache, known or not, before the cache is emptied. About 1 kB each. */
const ENTRIES = 10_000;

/**
 * Milliseconds for which a lookup may be reused, since content can be lost without a change of the
 * catalogue; and a fault, since clients are asked to retry after that.
 */
export const CACHE_TTL_MS = 5_000;

/** A lookup in flight or its result, and how long it may be reused. */
interface Lookup {
  readonly result: Promise<LookupResult>;
  readonly validUntil: number;
}

/**
 * Storage whose lookups are cached until the catalogue changes, and shared while they are in
 * flight. Only faults found by a GET are cached, because a lookup may miss them, and later HEADs
 * must say the same.
 */
export class CachedStorage implements ItemStorage {
  readonly generations: Generations;
  readonly #storage: ItemStorage;
  readonly #ttl: number;
  readonly #lookups = new Map<Token, Lookup>();
  /** The generation of all of them. */
  #generation = 0;
  /** The instant of the last lookup. */
  #now = 0;

  /** @param ttl Milliseconds for which a lookup or a fault may be reused at most. */
  constructor(storage: ItemStorage & Versioned, ttl = CACHE_TTL_MS) {
    this.#storage = storage;
    this.#ttl = ttl;
    this.generations = new Generations(storage);
  }

  async find(token: Token, now: number): Promise<LookupResult> {
    await this.generations.refresh(now);
    this.#now = now;
    this.#forgetStale();
    const known = this.#lookups.get(token);
    const left = (known?.validUntil ?? now) - now;
    if (known !== undefined && left > 0 && left <= this.#ttl) { // if more, the clock was set back
      return await known.result;
    }
    const validUntil = now + this.#ttl;
    const result = this.#storage.find(token, now).then((found) => ({ ...found, validUntil }));
    const lookup = { result, validUntil };
    this.#keep(token, lookup);
    result.catch(() => {
      if (this.#lookups.get(token) === lookup) this.#lookups.delete(token);
    });
    return await result;
  }

  async open(item: PublishedItem, range?: ByteRange): Promise<Body> {
    try {
      return await this.#storage.open(item, range);
    } catch (error) {
      this.generations.end(); // other items with this content are stale, too
      this.#forgetStale();
      if (error instanceof StorageError) {
        const validUntil = this.#now + this.#ttl;
        const result = Promise.reject(error);
        result.catch(() => {}); // reported where it is found
        this.#keep(item.token, { result, validUntil });
      }
      throw error;
    }
  }

  async check(): Promise<void> {
    try {
      await this.#storage.check();
    } catch (error) {
      this.generations.end();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#storage.close();
  }

  #keep(token: Token, lookup: Lookup): void {
    // Responses made from the forgotten lookups must end, too.
    if (this.#lookups.size >= ENTRIES) this.generations.end();
    this.#forgetStale();
    this.#lookups.set(token, lookup);
  }

  #forgetStale(): void {
    if (this.#generation === this.generations.generation) return;
    this.#generation = this.generations.generation;
    this.#lookups.clear();
  }
}
