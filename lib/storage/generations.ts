/**
 * Generations limit how long lookups are reused. Other processes publish and unpublish at any time,
 * so a lookup may be reused only within its generation, which ends with every change. Content can
 * be lost without any change, so a generation also ends with its period, and periods are short.
 * Everything cached from storage has the same generations and periods.
 */

/** A source whose version changes when other processes write to it. */
export interface Versioned {
  /** Reads the version. Every change gives it another value. */
  version(): Promise<number>;

  /** Milliseconds for which a version may be reused. A change may go unnoticed for that long. */
  readonly versionTtlMs: number;
}

/**
 * Milliseconds after which a period ends, whatever is published meanwhile. Clients are asked to
 * retry after the same time, when a cached fault has expired.
 */
export const PERIOD_MS = 5_000;

/**
 * Numbers the generations of lookups, and the periods. A generation ends when a change is detected,
 * and with its period. A period ends when storage proves to have failed, when the clock is set
 * back, and after {@linkcode PERIOD_MS}, even if the version cannot be read.
 */
export class Generations {
  readonly #source: Versioned;
  #generation = 0;
  #period = 0;
  /** When the period began. */
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

  /** The current period. What content was found to be in an earlier one may be wrong by now. */
  get period(): number {
    return this.#period;
  }

  /**
   * Ends a period that is due, and checks the version when that is due.
   *
   * @param now Milliseconds since the epoch.
   * @returns A promise to await before reusing a lookup; `undefined` if there is none.
   */
  refresh(now: number): Promise<void> | undefined {
    this.#now = now;
    const isSetBack = now < this.#checkedAt; // a clock set back must not extend anything
    if (isSetBack) this.#checkedAt = -Infinity;
    if (isSetBack || now - this.#begunAt >= PERIOD_MS) this.endPeriod();
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

  /** Ends the generation. */
  end(): void {
    this.#generation++;
  }

  /** Ends the period, because storage proved to have failed, and the generation. */
  endPeriod(): void {
    this.end();
    this.#period++;
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
