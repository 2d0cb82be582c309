/** Bounded concurrency. */

import { unlessAborted } from "./abort.ts";

/**
 * Runs an action on each value, in no particular order.
 *
 * @param concurrency The maximum number of actions in flight, and of values read for them.
 * @param signal Stops the work. Actions in flight are awaited.
 * @throws The error of the first action that fails, or the signal's abort reason, once no action is
 *   in flight.
 */
export async function forEach<T>(
  values: AsyncIterable<T>,
  { concurrency, signal }: { concurrency: number; signal?: AbortSignal },
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
  iterator.return?.()?.catch(() => {}); // may block on an abandoned read
  throw faults[0];
}
