/**
 * One at a time, within one process.
 */

/** Runs actions one after the other, in the order in which they came. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs an action when all before it have ended, in whatever way. */
  run<T>(action: () => Promise<T>): Promise<T> {
    const taken = this.#last.then(action);
    this.#last = taken.catch(() => {});
    return taken;
  }
}
