/** When counts are flushed. */

import { SerialQueue } from "../../async/serial_queue.ts";

/** Milliseconds between two flushes. */
export const FLUSH_INTERVAL_MS = 5_000;

/** Flushes every five seconds. The timer does not keep the process running. */
export class FlushSchedule {
  readonly #flush: () => Promise<void>;
  readonly #queue = new SerialQueue(); // one flush at a time
  /** The flush that waits for the one under way. */
  #waiting: Promise<void> | undefined;
  #stopTimer = () => {};

  /** @param flush Flushes the counts so far. Never rejects. */
  constructor(flush: () => Promise<void>) {
    this.#flush = flush;
  }

  /** Starts flushing every five seconds. */
  start(): void {
    const timer = setInterval(() => this.flush(), FLUSH_INTERVAL_MS);
    timer.unref();
    this.#stopTimer = () => clearInterval(timer);
  }

  /** Flushes as soon as no other flush is under way. */
  flush(): Promise<void> {
    // One that waits takes all counts up to its turn, so that no second one need wait.
    return this.#waiting ??= this.#queue.run(() => {
      this.#waiting = undefined;
      return this.#flush();
    });
  }

  /** Flushes no more by itself. */
  stop(): void {
    this.#stopTimer();
  }
}
