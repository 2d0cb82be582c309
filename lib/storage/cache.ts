/** A bounded cache of lookups. */

import { StorageError } from "../errors/storage_error.ts";
import type { ByteRange } from "../http/byte_range.ts";
import type { Body } from "../http/outcome.ts";
import { SingleReadError } from "./errors.ts";
import { Generations, type Versioned } from "./generations.ts";
import type { LookupResult, PublishedItem } from "./item.ts";
import { type Ask, ObjectChecks } from "./object_checks.ts";
import type { CacheableStorage, ItemStorage, OnFault } from "./storage.ts";
import type { Token } from "./token.ts";

/**
 * The maximum number of lookups to cache, of any tokens. One more empties the cache. Each takes
 * about 1 kB.
 */
const MAX_LOOKUPS = 10_000;

/**
 * Caches each lookup for its generation, and shares it while it is in flight. Failed lookups are
 * not cached. If a GET cannot open content in which the lookup found no fault, lookups report the
 * fault for a time, because later HEADs must report it as well. Checks of objects in a bucket are
 * cached apart from lookups, and for longer.
 */
export class CachedStorage implements ItemStorage {
  readonly generations: Generations;
  readonly #storage: CacheableStorage;
  readonly #checks: ObjectChecks;
  /** Lookups in flight, or their results. */
  readonly #lookups = new Map<Token, Promise<LookupResult>>();
  /** The generation of all these lookups. */
  #generation = 0;

  /**
   * @param source Has a version that changes with what is published.
   * @param clock Returns the time in milliseconds since the epoch.
   */
  constructor(storage: CacheableStorage, source: Versioned, clock: () => number) {
    this.#storage = storage;
    this.generations = new Generations(source);
    this.#checks = new ObjectChecks(this.generations, clock);
  }

  async find(token: Token, now: number): Promise<LookupResult> {
    await this.generations.refresh(now);
    this.#forgetStale();
    const known = this.#lookups.get(token);
    if (known !== undefined) return await known;
    const lookup = this.#storage.lookUp(token, (item, ask) => this.#faultOf(item, ask));
    this.#cache(token, lookup);
    lookup.catch(() => {
      if (this.#lookups.get(token) === lookup) this.#lookups.delete(token);
    });
    return await lookup;
  }

  async open(item: PublishedItem, range?: ByteRange, onFault?: OnFault): Promise<Body> {
    const onLateFault = (fault: unknown) => {
      const last = range?.last ?? item.length - 1;
      this.#checks.noteCutOff(item, { range: { first: last, last } });
      this.generations.end();
      onFault?.(fault);
    };
    try {
      const body = await this.#storage.open(item, range, onFault && onLateFault);
      this.#checks.noteAnswer();
      return body;
    } catch (error) {
      if (error instanceof SingleReadError) throw error;
      if (error instanceof StorageError) this.#checks.noteFailure(item, error, { range });
      this.generations.end(); // lookups of other items with this content are wrong, too
      throw error;
    }
  }

  async check(): Promise<void> {
    try {
      await this.#storage.check();
    } catch (error) {
      this.generations.endPeriod();
      throw error;
    }
  }

  async #faultOf(item: PublishedItem, ask: Ask): Promise<StorageError | undefined> {
    if (this.#storage.isBilled) return await this.#checks.faultOf(item, ask);
    return this.#checks.faultFound(item) ?? await ask(); // a look at a file costs microseconds
  }

  #cache(token: Token, lookup: Promise<LookupResult>): void {
    // Responses made from these lookups must end with them.
    if (this.#lookups.size >= MAX_LOOKUPS) this.generations.end();
    this.#forgetStale();
    this.#lookups.set(token, lookup);
  }

  #forgetStale(): void {
    if (this.#generation === this.generations.generation) return;
    this.#generation = this.generations.generation;
    this.#lookups.clear();
  }
}
