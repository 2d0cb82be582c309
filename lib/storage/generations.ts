/**
 * Detecting stale lookups. Other processes publish and unpublish at any time; each change gives the
 * catalogue a new version, which is checked while requests arrive.
 */

/** Something whose version changes when others write to it. */
export interface Versioned {
  /** Reads the version, which differs after every change. */
  version(): Promise<number>;

  /** Milliseconds for which a version may be reused, and so for which a change may go unnoticed. */
  readonly versionTtlMs: number;
}

/**
 * Numbers generations of lookups: every detected change ends one. While the version cannot be read,
 * the generation continues, and callers have to expire what they keep.
 */
export class Generations {
  readonly #source: Versioned;
  #generation = 0;
  #version: number | undefined;
  #lookedAt = -Infinity;
  #isReadable = true;
  #look: Promise<void> | undefined;

  constructor(source: Versioned) {
    this.#source = source;
  }

  /** The current generation, to which lookups from now on belong. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Checks the version when that is due.
   *
   * @param now Milliseconds since the epoch.
   * @returns What to await before reusing a lookup; `undefined` for nothing.
   */
  refresh(now: number): Promise<void> | undefined {
    const age = now - this.#lookedAt; // negative if the clock was set back
    const ttl = this.#source.versionTtlMs;
    if (age >= 0 && age < ttl / 2) return undefined;
    this.#look ??= this.#begin(now).finally(() => this.#look = undefined);
    return this.#isReadable && !(age >= 0 && age < ttl) ? this.#look : undefined;
  }

  /** Whether a lookup of a generation can be reused at an instant without waiting. */
  holds(generation: number, now: number): boolean {
    return this.refresh(now) === undefined && generation === this.#generation;
  }

  /** Ends the generation: a lookup proved wrong. */
  end(): void {
    this.#generation++;
  }

  async #begin(now: number): Promise<void> {
    try {
      const version = await this.#source.version();
      if (version !== this.#version) this.end();
      this.#version = version;
      this.#isReadable = true;
    } catch { // the next storage operation reports the error
      this.#isReadable = false;
    }
    this.#lookedAt = now;
  }
}
