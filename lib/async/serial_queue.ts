/** A queue that runs one action at a time, within one process. */

/** Runs actions one after another, first come, first served. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs an action once all earlier ones have settled. */
  run<T>(action: () => Promise<T>): Promise<T> {
    const taken = this.#last.then(action);
    this.#last = taken.catch(() => {});
    return taken;
  }
}
