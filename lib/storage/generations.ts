/**
 * Generations limit how long lookups are reused. Other processes publish and unpublish at any time,
 * and content can be lost, so a lookup may be reused only within its generation, and generations
 * are short. Everything cached from storage has the same generations.
 */

/** A source whose version changes when other processes write to it. */
export interface Versioned {
  /** Reads the version. Every change gives it another value. */
  version(): Promise<number>;

  /** Milliseconds for which a version may be reused. A change may go unnoticed for that long. */
  readonly versionTtlMs: number;
}

/**
 * Milliseconds after which a generation ends even if the catalogue has not changed, because content
 * may have been lost meanwhile. Clients are asked to retry after the same time, when a cached fault
 * has expired.
 */
export const GENERATION_MS = 5_000;

/**
 * Numbers the generations of lookups. A generation ends when a change is detected, when the clock
 * is set back, and after {@linkcode GENERATION_MS}, even if the version cannot be read.
 */
export class Generations {
  readonly #source: Versioned;
  #generation = 0;
  #begunAt = -Infinity;
  /** The instant of the latest request. */
  #now = -Infinity;
  #version: number | undefined;
  #checkedAt = -Infinity;
  #isReadable = true;
  #check: Promise<void> | undefined;

  constructor(source: Versioned) {
    this.#source = source;
  }

  /** The current generation. New lookups belong to it. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Ends a generation that is due, and checks the version when that is due.
   *
   * @param now Milliseconds since the epoch.
   * @returns A promise to await before reusing a lookup; `undefined` if there is none.
   */
  refresh(now: number): Promise<void> | undefined {
    this.#now = now;
    const isSetBack = now < this.#checkedAt; // a clock set back must not extend anything
    if (isSetBack) this.#checkedAt = -Infinity;
    if (isSetBack || now - this.#begunAt >= GENERATION_MS) this.end();
    const age = now - this.#checkedAt;
    const ttl = this.#source.versionTtlMs;
    if (age < ttl / 2) return undefined;
    this.#check ??= this.#readVersion(now).finally(() => this.#check = undefined);
    return this.#isReadable && age >= ttl ? this.#check : undefined;
  }

  /** Returns whether a generation is known, without waiting, to be current at an instant. */
  isCurrent(generation: number, now: number): boolean {
    return this.refresh(now) === undefined && generation === this.#generation;
  }

  /** Ends the generation, because a lookup proved wrong. */
  end(): void {
    this.#generation++;
    this.#begunAt = this.#now;
  }

  async #readVersion(now: number): Promise<void> {
    try {
      const version = await this.#source.version();
      if (version !== this.#version) this.end();
      this.#version = version;
      this.#isReadable = true;
    } catch { // the next storage operation reports the error
      this.#isReadable = false;
    }
    this.#checkedAt = now;
  }
}
