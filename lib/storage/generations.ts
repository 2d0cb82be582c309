/**
 * Whether what was read before still holds. Other processes publish and unpublish at any time; each
 * such change moves the version of the catalogue, which is looked at while requests come.
 */

import type { Awaitable } from "../http/awaitable.ts";

/** Something with a version that others move. */
export interface Versioned {
  /**
   * The version: another one after every change. At once where that takes no time.
   *
   * @throws {StorageError} When it cannot be read.
   */
  version(): Awaitable<number>;

  /** Milliseconds for which a version read is believed, and so for which a change may go unseen. */
  readonly versionTtl: number;
}

/**
 * Numbers the generations of what was read: one ends with each change that is seen. While the
 * version cannot be read, the last generation goes on, and it is for others to limit what they keep.
 */
export class Generations {
  readonly #source: Versioned;
  #generation = 0;
  #version: number | undefined;
  #lookedAt = -Infinity;
  #isReadable = true;
  #look: Promise<void> | undefined;

  /**
   * Follows the version of a source.
   *
   * @param source Where the version is read.
   */
  constructor(source: Versioned) {
    this.#source = source;
  }

  /** The present generation. What is about to be read belongs to it, as long as it lasts. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Looks at the version when that is due.
   *
   * @param now Milliseconds since the epoch.
   * @returns What to wait for before anything read is used again; `undefined` for nothing.
   */
  refresh(now: number): Promise<void> | undefined {
    const age = now - this.#lookedAt; // negative where the clock was set back
    const ttl = this.#source.versionTtl;
    if (age >= 0 && age < ttl / 2) return undefined;
    this.#look ??= this.#begin(now);
    return this.#isReadable && !(age >= 0 && age < ttl) ? this.#look : undefined;
  }

  /** The generation at an instant, as far as it can be told without waiting. */
  generationAt(now: number): number {
    this.refresh(now);
    return this.#generation;
  }

  /** Whether what belongs to a generation can be used at an instant, without waiting for anything. */
  holds(generation: number, now: number): boolean {
    return this.refresh(now) === undefined && generation === this.#generation;
  }

  /** Ends the generation: something proved wrong. */
  end(): void {
    this.#generation++;
  }

  #begin(now: number): Promise<void> | undefined {
    try {
      const version = this.#source.version();
      if (version instanceof Promise) {
        return version
          .then((version) => this.#see(version, now), () => this.#miss(now))
          .finally(() => this.#look = undefined);
      }
      this.#see(version, now);
    } catch {
      this.#miss(now);
    }
  }

  #see(version: number, now: number): void {
    if (version !== this.#version) this.end();
    this.#version = version;
    this.#lookedAt = now;
    this.#isReadable = true;
  }

  /** What failed is told by whatever is asked of storage next. */
  #miss(now: number): void {
    this.#lookedAt = now;
    this.#isReadable = false;
  }
}
