/** When counts are flushed. */

import { SerialQueue } from "../../async/serial_queue.ts";

/**
 * Milliseconds between two flushes. A crash can lose the calls of this time, but rarely hides a client.
 */
export const FLUSH_INTERVAL_MS = 5_000;

/** The shortest time, in milliseconds, between two flushes for first calls. */
const FIRST_CALL_INTERVAL_MS = 100;

/**
 * Flushes every five seconds, and at once for the first call of a client to a route on a day. Its
 * timers do not keep the process running.
 */
export class FlushSchedule {
  readonly #flush: () => Promise<void>;
  readonly #queue = new SerialQueue(); // one flush at a time
  /** The flush that waits for the one under way. */
  #waiting: Promise<void> | undefined;
  /** The timer of the next flush for a first call. */
  #hastened: ReturnType<typeof setTimeout> | undefined;
  /** When such a flush may come, by `performance.now()`. */
  #mayHastenAt = 0;
  #isStopped = false;
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

  /** Flushes at once, for a client's first call, but not more often than ten times a second. */
  hasten(): void {
    if (this.#isStopped || this.#hastened !== undefined) return;
    this.#hastened = setTimeout(() => {
      this.#hastened = undefined;
      this.#mayHastenAt = performance.now() + FIRST_CALL_INTERVAL_MS;
      this.flush();
    }, Math.max(0, Math.ceil(this.#mayHastenAt - performance.now())));
    this.#hastened.unref();
  }

  /** Flushes no more by itself. */
  stop(): void {
    this.#stopTimer();
    clearTimeout(this.#hastened);
    this.#isStopped = true;
  }
}
