/** Waiting with a timeout: no test may hang. */

import { fulfilledWithin } from "../../lib/async/deadline.ts";

/** The timeout in milliseconds: a minute, since a busy machine is slow. */
const TIMEOUT = 60_000;

/** Processes to end when a wait for them is in vain. */
type Process = Pick<Deno.ChildProcess, "kill">;

/**
 * Waits for a promise.
 *
 * @param what What is waited for, for the error.
 * @param process Killed if the time is up, so that nothing else waits for it.
 * @throws When it is not settled in time.
 */
export async function within<T>(
  what: string,
  promise: Promise<T>,
  { timeout = TIMEOUT, process }: { timeout?: number; process?: Process } = {},
): Promise<T> {
  if (await fulfilledWithin(timeout, promise)) return await promise;
  process?.kill("SIGKILL");
  throw new Error(`Waited in vain for ${what}, for ${timeout / 1_000} seconds`);
}

/** Waits until a condition is met. */
export async function until(
  what: string,
  isMet: () => boolean | Promise<boolean>,
  timeout = TIMEOUT,
): Promise<void> {
  const end = performance.now() + timeout;
  while (!await within(what, Promise.resolve(isMet()), { timeout })) {
    if (performance.now() > end) {
      throw new Error(`Waited in vain for ${what}, for ${timeout / 1_000} seconds`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50)); // asking can cost a process
  }
}
