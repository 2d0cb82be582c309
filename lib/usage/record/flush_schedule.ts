/** When counts are flushed. */

import { SerialQueue } from "../../async/serial_queue.ts";

/** Milliseconds between two flushes. A crash can lose calls of this time, but hardly a client. */
export const FLUSH_INTERVAL_MS = 5_000;

/** The shortest time, in milliseconds, between two flushes for clients that call first. */
const FIRST_CALL_INTERVAL_MS = 100;

/**
 * Flushes every five seconds, and at once for a client that calls first. Its timers do not keep the
 * process running.
 */
export class FlushSchedule {
  readonly #flush: (isLast: boolean) => Promise<void>;
  readonly #queue = new SerialQueue(); // one flush at a time
  /** The flush that waits for the one under way. */
  #waiting: Promise<void> | undefined;
  /** The timer of the next flush for clients that call first, and when one may come. */
  #hastened: ReturnType<typeof setTimeout> | undefined;
  #mayHasten = 0;
  /** Whether the next flush is the last one. */
  #isStopping = false;
  #stopTimer = () => {};

  /** @param flush Flushes the counts so far. Never rejects. */
  constructor(flush: (isLast: boolean) => Promise<void>) {
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
      return this.#flush(this.#isStopping);
    });
  }

  /** Flushes at once, for a client that calls first, but not more often than ten times a second. */
  hasten(): void {
    if (this.#isStopping || this.#hastened !== undefined) return;
    this.#hastened = setTimeout(() => {
      this.#hastened = undefined;
      this.#mayHasten = performance.now() + FIRST_CALL_INTERVAL_MS;
      this.flush();
    }, Math.max(0, Math.ceil(this.#mayHasten - performance.now())));
    this.#hastened.unref();
  }

  /** Flushes no more by itself. Each flush that begins from now on may be the last. */
  stop(): void {
    this.#stopTimer();
    clearTimeout(this.#hastened);
    this.#isStopping = true;
  }
}
