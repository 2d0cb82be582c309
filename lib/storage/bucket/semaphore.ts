/**
 * A limit on what is in use at once.
 */

/** So many places, taken in the order in which they were asked for. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(places: number) {
    this.#free = places;
  }

  /**
   * Takes a place, as soon as there is one.
   *
   * @returns Gives it back; to be called once.
   * @throws What aborted the signal before that.
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
    next(); // the place is that one's now
  }
}
