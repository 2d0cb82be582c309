/**
 * Generations: the one clock of all that is remembered of storage. Other processes publish and
 * unpublish at any time, and content can be lost. So whatever was looked up may be reused only
 * within its generation, and each generation ends soon.
 */

/** Something whose version changes when others write to it. */
export interface Versioned {
  /** Reads the version, which differs after every change. */
  version(): Promise<number>;

  /**
   * Milliseconds for which a version may be reused, so that a change may go unnoticed for as long.
   */
  readonly versionTtlMs: number;
}

/**
 * Milliseconds after which a generation ends even if the catalogue has not changed, because content
 * can be lost meanwhile. Clients are asked to retry after as long, so that a fault can be over.
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

  /** The current generation, to which lookups from now on belong. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Ends a generation that is due, and checks the version when that is due.
   *
   * @param now Milliseconds since the epoch.
   * @returns What to await before a lookup is reused; `undefined` if there is nothing to await.
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

  /** Whether a generation is known to be the current one at an instant, without waiting. */
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
