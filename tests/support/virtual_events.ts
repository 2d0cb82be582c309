/** Events in virtual time, one after another. */

/** Lets everything happen that waits for nothing but promises. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Event {
  readonly at: number;
  readonly happen: () => unknown;
}

/** A queue of events, and the time until which they have happened. */
export class VirtualEvents {
  /** In milliseconds since the epoch. */
  now: number;
  /** The next one comes last. */
  readonly #queue: Event[] = [];

  constructor(now: number) {
    this.now = now;
  }

  /** Arranges an event, after those of the same time. If it takes real time, others wait for it. */
  at(at: number, happen: () => unknown): void {
    let [low, high] = [0, this.#queue.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#queue[middle] as Event).at > at) low = middle + 1;
      else high = middle;
    }
    this.#queue.splice(low, 0, { at: Math.max(at, this.now), happen });
  }

  /** Lets milliseconds pass. */
  async pass(time: number): Promise<void> {
    const end = this.now + time;
    await settle();
    while (await this.#next(end));
    this.now = end;
  }

  /** Lets as much time pass as a promise takes. */
  async during<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const end = () => isSettled = true;
    promise.then(end, end);
    await settle();
    while (!isSettled && await this.#next(Infinity));
    if (!isSettled) throw new Error("Nothing is left that the promise could wait for");
    return await promise;
  }

  /** Lets the next event happen if it is due by then. Returns whether there was one. */
  async #next(end: number): Promise<boolean> {
    const next = this.#queue.at(-1);
    if (next === undefined || next.at > end) return false;
    this.#queue.pop();
    this.now = next.at;
    await next.happen();
    await settle();
    return true;
  }
}
