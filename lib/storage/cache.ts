/**
 * A bounded cache of lookups.
 */

import QuickLRU from "quick-lru";
import type { Body } from "../http/outcome.ts";
import type { ByteRange } from "../http/byte_range.ts";
import { Generations } from "./generations.ts";
import { StorageError } from "./errors.ts";
import type { Token } from "./token.ts";
import type { LookupResult, PublishedItem } from "./item.ts";
import type { ItemStorage } from "./storage.ts";

/**
 * The most recently used tokens to cache, known or not; the cache may hold twice as many. About 1
 * kB each.
 */
const ENTRIES = 5_000;

/** How long a fault is remembered at most: clients are told to retry after that. */
const MAX_FAULT_TTL_MS = 5_000;

/** Adds a cache of `ttl` milliseconds to storage; returns the storage itself if `ttl` is 0. */
export function cached(storage: ItemStorage, ttl: number): ItemStorage {
  return ttl > 0 ? new CachedStorage(storage, ttl) : storage;
}

/** A lookup result, and how long it may be reused. */
type Remembered = LookupResult & { readonly freshUntil: number };

/** What a GET found when it opened content. */
interface Fault {
  readonly state: "fault";
  readonly error: StorageError;
  readonly freshUntil: number;
}

/**
 * Storage whose lookups are cached until the catalogue changes, and shared while they are in
 * flight. Only faults found by a GET are cached, because a lookup may miss them, and the HEADs after
 * it must say the same.
 */
export class CachedStorage implements ItemStorage {
  readonly generations: Generations;
  readonly #storage: ItemStorage;
  readonly #ttl: number;
  readonly #results = new QuickLRU<Token, Remembered | Fault>({
    maxSize: ENTRIES,
    onEviction: () => this.#endWithoutForgetting(),
  });
  readonly #inFlight = new Map<Token, Promise<Remembered>>();
  /** The generation of everything cached and in flight. */
  #generation = 0;
  /** The instant of the last lookup. */
  #now = 0;

  /** @param ttl Milliseconds for which a lookup may be reused at most. */
  constructor(storage: ItemStorage, ttl: number) {
    this.#storage = storage;
    this.#ttl = ttl;
    this.generations = new Generations(storage);
  }

  get versionTtl(): number {
    return this.#storage.versionTtl;
  }

  version(): Promise<number> {
    return this.#storage.version();
  }

  async find(token: Token, now: number): Promise<LookupResult> {
    await this.generations.refresh(now);
    this.#now = now;
    this.#forgetStale();
    const remembered = this.#results.get(token);
    const left = (remembered?.freshUntil ?? now) - now;
    if (remembered !== undefined && left > 0 && left <= this.#ttl) { // if more, the clock was set back
      if (remembered.state !== "fault") return remembered;
      throw remembered.error;
    }
    return await (this.#inFlight.get(token) ?? this.#lookUp(token, now));
  }

  async #lookUp(token: Token, now: number): Promise<Remembered> {
    const lookup = this.#storage.find(token, now)
      .then((result): Remembered => ({ ...result, freshUntil: now + this.#ttl }));
    this.#inFlight.set(token, lookup);
    try {
      const found = await lookup;
      // Unless it was invalidated meanwhile.
      if (this.#inFlight.get(token) === lookup) this.#results.set(token, found);
      return found;
    } finally {
      if (this.#inFlight.get(token) === lookup) this.#inFlight.delete(token);
    }
  }

  async open(item: PublishedItem, range?: ByteRange): Promise<Body> {
    try {
      return await this.#storage.open(item, range);
    } catch (error) {
      this.generations.end(); // other items with this content are stale, too
      this.#forgetStale();
      if (error instanceof StorageError) {
        const freshUntil = this.#now + Math.min(this.#ttl, MAX_FAULT_TTL_MS);
        this.#results.set(item.token, { state: "fault", error, freshUntil });
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

  #forgetStale(): void {
    if (this.#generation === this.generations.generation) return;
    this.#generation = this.generations.generation;
    this.#results.clear();
    this.#inFlight.clear();
  }

  /**
   * Ends the generation but keeps the cache: the next lookup of an evicted token may differ from
   * what others derived from this one.
   */
  #endWithoutForgetting(): void {
    const isCurrent = this.#generation === this.generations.generation;
    this.generations.end();
    if (isCurrent) this.#generation = this.generations.generation;
  }
}
