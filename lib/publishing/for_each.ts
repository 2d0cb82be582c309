/**
 * Work on many things, some of them at once.
 */

import { unlessAborted } from "./abort.ts";

/** How the work is done. */
export interface ForEachOptions {
  /** Values that are worked on at once; no more are read ahead. */
  readonly concurrency: number;
  /** Ends the work; what is under way is waited for. */
  readonly signal: AbortSignal;
}

/**
 * Runs an action on each value, in no certain order.
 *
 * @throws What the first failing action throws, or what aborted the signal. Nothing runs any more then.
 */
export async function forEach<T>(
  values: AsyncIterable<T>,
  { concurrency, signal }: ForEachOptions,
  action: (value: T) => Promise<void>,
): Promise<void> {
  const iterator = values[Symbol.asyncIterator]();
  const faults: unknown[] = [];
  const work = async () => {
    try {
      while (faults.length === 0) {
        const { done, value } = await unlessAborted(iterator.next(), signal);
        if (done) return;
        await action(value);
      }
    } catch (error) {
      faults.push(error);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  if (faults.length === 0) return;
  iterator.return?.()?.catch(() => {}); // which may wait for what the signal has given up on
  throw faults[0];
}
