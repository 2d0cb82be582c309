/**
 * A bounded cache of lookups.
 */

import QuickLRU from "quick-lru";
import type { Body } from "../http/answer.ts";
import { andThen, attempt, type Awaitable } from "../http/awaitable.ts";
import type { ByteRange } from "../http/byte_range.ts";
import { Generations } from "./generations.ts";
import type { Token } from "./token.ts";
import type { LookupResult, PublishedItem, Storage } from "./storage.ts";

/**
 * The most recently used tokens to cache, known or not; the cache may hold twice as many. About 1
 * kB each.
 */
const ENTRIES = 5_000;

/** Adds a cache of `ttl` milliseconds to storage; returns the storage itself if `ttl` is 0. */
export function cached(storage: Storage, ttl: number): Storage {
  return ttl > 0 ? new CachedStorage(storage, ttl) : storage;
}

/** A lookup result, and how long it may be reused. */
type Remembered = LookupResult & { readonly freshUntil: number };

/**
 * Storage whose lookups are cached until the catalogue changes, and shared while they are in
 * flight. Faults are not cached.
 */
export class CachedStorage implements Storage {
  readonly generations: Generations;
  readonly #storage: Storage;
  readonly #ttl: number;
  readonly #results = new QuickLRU<Token, Remembered>({
    maxSize: ENTRIES,
    onEviction: () => this.#endWithoutForgetting(),
  });
  readonly #inFlight = new Map<Token, Promise<Remembered>>();
  /** The generation of everything cached and in flight. */
  #generation = 0;

  /** @param ttl Milliseconds for which a lookup may be reused at most. */
  constructor(storage: Storage, ttl: number) {
    this.#storage = storage;
    this.#ttl = ttl;
    this.generations = new Generations(storage);
  }

  /** @inheritdoc */
  get versionTtl(): number {
    return this.#storage.versionTtl;
  }

  /** @inheritdoc */
  version(): Awaitable<number> {
    return this.#storage.version();
  }

  /** @inheritdoc */
  find(token: Token, now: number): Awaitable<LookupResult> {
    return andThen(this.generations.refresh(now), () => this.#find(token, now));
  }

  #find(token: Token, now: number): Awaitable<LookupResult> {
    if (this.#generation !== this.generations.generation) {
      this.#generation = this.generations.generation;
      this.#results.clear();
      this.#inFlight.clear();
    }
    const remembered = this.#results.get(token);
    if (remembered !== undefined) {
      const left = remembered.freshUntil - now;
      if (left > 0 && left <= this.#ttl) return remembered; // if more, the clock was set back
    }
    const inFlight = this.#inFlight.get(token);
    if (inFlight !== undefined) return inFlight;
    const lookup = this.#lookUp(token, now);
    if (lookup instanceof Promise) return this.#share(token, lookup);
    this.#results.set(token, lookup);
    return lookup;
  }

  async #share(token: Token, lookup: Promise<Remembered>): Promise<Remembered> {
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

  /** @inheritdoc */
  open(item: PublishedItem, range?: ByteRange): Awaitable<Body> {
    return attempt(() => this.#storage.open(item, range), (error) => {
      this.generations.end(); // other items with this content are stale, too
      throw error;
    });
  }

  /** @inheritdoc */
  async check(): Promise<void> {
    try {
      await this.#storage.check();
    } catch (error) {
      this.generations.end();
      throw error;
    }
  }

  /** @inheritdoc */
  close(): Promise<void> {
    return this.#storage.close();
  }

  #lookUp(token: Token, now: number): Awaitable<Remembered> {
    const freshUntil = now + this.#ttl;
    return attempt(
      () => andThen(this.#storage.find(token, now), (result) => ({ ...result, freshUntil })),
      (error) => {
        this.#forget(token);
        throw error;
      },
    );
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

  #forget(token: Token): void {
    this.#results.delete(token);
    this.#inFlight.delete(token);
  }
}
