/**
 * A bounded memory of look-ups. Another process may publish and unpublish at any time and cannot
 * tell this one, so what is remembered is believed for a limited time only.
 */

import QuickLRU from "quick-lru";
import type { ByteRange } from "../http/byte_range.ts";
import type { Token } from "./token.ts";
import type { Finding, PublishedItem, Storage } from "./storage.ts";

/** Tokens remembered, of the most recent, known or not; twice as many at most. About 1 kB each. */
const ENTRIES = 5_000;

/** How long look-ups are believed, and by which clock. */
export interface CacheOptions {
  /** Milliseconds. */
  readonly ttl: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Storage with a memory; as it is, when that is to last no time at all. */
export function cached(storage: Storage, options: CacheOptions): Storage {
  return options.ttl > 0 ? new CachedStorage(storage, options) : storage;
}

/** A look-up, and how long it is believed. */
type Remembered = Finding & { readonly freshUntil: number };

/** Storage whose look-ups are remembered, and shared while they are under way. Faults are not. */
export class CachedStorage implements Storage {
  readonly #storage: Storage;
  readonly #options: CacheOptions;
  readonly #findings = new QuickLRU<Token, Remembered>({ maxSize: ENTRIES });
  readonly #underWay = new Map<Token, Promise<Remembered>>();

  constructor(storage: Storage, options: CacheOptions) {
    this.#storage = storage;
    this.#options = options;
  }

  /** @inheritdoc */
  async find(token: Token): Promise<Finding> {
    const remembered = this.#findings.get(token);
    if (remembered !== undefined) {
      const left = remembered.freshUntil - this.#options.now();
      if (left > 0 && left <= this.#options.ttl) return remembered; // more: the clock was set back
    }
    let lookUp = this.#underWay.get(token);
    if (lookUp === undefined) this.#underWay.set(token, lookUp = this.#lookUp(token));
    return await lookUp;
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
  async check(): Promise<void> {
    try {
      await this.#storage.check();
    } catch (error) {
      this.#findings.clear(); // what is remembered may be wrong now
      throw error;
    }
  }

  /** @inheritdoc */
  close(): void {
    this.#storage.close();
  }

  async #lookUp(token: Token): Promise<Remembered> {
    const { now, ttl } = this.#options;
    try {
      const finding = await this.#storage.find(token);
      const remembered = { ...finding, freshUntil: now() + ttl };
      this.#findings.set(token, remembered);
      return remembered;
    } catch (error) {
      this.#findings.delete(token);
      throw error;
    } finally {
      this.#underWay.delete(token);
    }
  }
}
