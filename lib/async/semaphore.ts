/** A limit on concurrency. */

import { unlessAborted } from "./abort.ts";

/** A semaphore that serves waiters in order. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(permits: number) {
    this.#free = permits;
  }

  /**
   * Waits for a permit, and takes it.
   *
   * @returns A function that releases the permit, to be called once.
   * @throws The abort reason, if the signal is aborted first.
   */
  async acquire(signal: AbortSignal): Promise<() => void> {
    if (this.#free > 0) this.#free--;
    else {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      try {
        await unlessAborted(promise, signal);
      } catch (error) {
        if (!this.#waiting.delete(resolve)) this.#release(); // a permit was passed on meanwhile
        throw error;
      }
    }
    return () => this.#release();
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next(); // passes the permit on
  }
}
