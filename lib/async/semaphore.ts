/**
 * A limit on concurrency.
 */

/** A semaphore that serves waiters in order. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(places: number) {
    this.#free = places;
  }

  /**
   * Waits for a free place, and takes it.
   *
   * @returns A function that releases it; must be called once.
   * @throws The abort reason, if the signal is aborted first.
   */
  async acquire(signal: AbortSignal): Promise<() => void> {
    if (this.#free === 0) await this.#wait(signal);
    else this.#free--;
    return () => this.#release();
  }

  #wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = () => {
      this.#waiting.delete(resolve);
      reject(signal.reason);
    };
    if (signal.aborted) giveUp();
    else {
      this.#waiting.add(resolve);
      signal.addEventListener("abort", giveUp);
    }
    return promise.finally(() => signal.removeEventListener("abort", giveUp));
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next(); // passes the place on
  }
}
