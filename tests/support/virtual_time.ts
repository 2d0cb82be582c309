/** Timers that elapse when a test says so, and not by the clock of the machine. */

import { stub } from "@std/testing/mock";

/** The number of microtasks in a row that may follow from a timer. */
const MAX_MICROTASKS = 50;

/** Replaces `setTimeout`, `clearTimeout` and `performance.now` until it is disposed of. */
export class VirtualTime implements Disposable {
  /** In milliseconds since the beginning. */
  now = 0;
  readonly #timers = new Map<number, { readonly at: number; readonly elapse: () => void }>();
  readonly #stubs = new DisposableStack();
  #last = 0;

  constructor() {
    this.#stubs.use(stub(performance, "now", () => this.now));
    this.#stubs.use(
      stub(globalThis, "clearTimeout", (id) => void this.#timers.delete(id as unknown as number)),
    );
    this.#stubs.use(
      stub(
        globalThis,
        "setTimeout",
        ((elapse: () => void, pause = 0) => {
          this.#timers.set(++this.#last, { at: this.now + Math.max(pause, 0), elapse });
          return this.#last;
        }) as unknown as typeof setTimeout,
      ),
    );
  }

  [Symbol.dispose](): void {
    this.#stubs.dispose();
  }

  /** The number of timers that have not elapsed. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Lets some milliseconds pass. */
  async pass(milliseconds: number): Promise<void> {
    const end = this.now + milliseconds;
    do await microtasks(); while (this.#elapseNext(end));
    this.now = end;
  }

  /** Lets as much time pass as a promise takes. */
  async during<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settle = () => isSettled = true;
    promise.then(settle, settle);
    do await microtasks(); while (!isSettled && this.#elapseNext(Infinity));
    if (!isSettled) throw new Error("Nothing is left that the promise could wait for");
    return await promise;
  }

  /** Elapses the next timer that is due by then. Returns whether there was one. */
  #elapseNext(end: number): boolean {
    const due = [...this.#timers].filter(([, { at }]) => at <= end);
    const [next] = due.sort(([a, { at: first }], [b, { at: second }]) => first - second || a - b);
    if (next === undefined) return false;
    const [id, { at, elapse }] = next;
    this.#timers.delete(id);
    this.now = Math.max(this.now, at);
    elapse();
    return true;
  }
}

async function microtasks(): Promise<void> {
  for (let count = 0; count < MAX_MICROTASKS; count++) await Promise.resolve();
}
