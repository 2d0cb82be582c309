/**
 * A map that keeps what was asked for most recently. lru-cache does that too, but looks at
 * `process`, for which Deno starts all of Node: that alone would take as long as the rest of the
 * start.
 */

/** A map of bounded size. Its later half always survives; all else goes when it is full. */
export class RecentMap<K, V> {
  readonly #half: number;
  #recent = new Map<K, V>();
  #older = new Map<K, V>();

  /** @param max Entries kept at most; at least half as many are. */
  constructor(max: number) {
    this.#half = Math.ceil(max / 2);
  }

  /** The value of a key, which is thereby among the most recent. */
  get(key: K): V | undefined {
    const value = this.#recent.get(key);
    if (value !== undefined) return value;
    const older = this.#older.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  /** Sets a key, in place of one that was not asked for in a long time. */
  set(key: K, value: V): void {
    this.#recent.set(key, value);
    if (this.#recent.size < this.#half) return;
    this.#older = this.#recent;
    this.#recent = new Map();
  }

  /** Forgets a key. */
  delete(key: K): void {
    this.#recent.delete(key);
    this.#older.delete(key);
  }

  /** Forgets everything. */
  clear(): void {
    this.#recent.clear();
    this.#older.clear();
  }
}
