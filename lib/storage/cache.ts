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

/** Storage with a memory for so many milliseconds; as it is, when that is none. */
export function cached(storage: Storage, ttl: number): Storage {
  return ttl > 0 ? new CachedStorage(storage, ttl) : storage;
}

/** A look-up, and how long it is believed. */
type Remembered = Finding & { readonly freshUntil: number };

/** Storage whose look-ups are remembered, and shared while they are under way. Faults are not. */
export class CachedStorage implements Storage {
  readonly #storage: Storage;
  readonly #ttl: number;
  readonly #findings = new QuickLRU<Token, Remembered>({ maxSize: ENTRIES });
  readonly #underWay = new Map<Token, Promise<Remembered>>();

  /** @param ttl Milliseconds for which a lookup is believed. */
  constructor(storage: Storage, ttl: number) {
    this.#storage = storage;
    this.#ttl = ttl;
  }

  /** @inheritdoc */
  async find(token: Token, now: number): Promise<Finding> {
    const remembered = this.#findings.get(token);
    if (remembered !== undefined) {
      const left = remembered.freshUntil - now;
      if (left > 0 && left <= this.#ttl) return remembered; // more: the clock was set back
    }
    let lookUp = this.#underWay.get(token);
    if (lookUp === undefined) this.#underWay.set(token, lookUp = this.#lookUp(token, now));
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

  async #lookUp(token: Token, now: number): Promise<Remembered> {
    try {
      const finding = await this.#storage.find(token, now);
      const remembered = { ...finding, freshUntil: now + this.#ttl };
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
