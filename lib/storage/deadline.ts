/**
 * Waiting no longer than is sensible.
 */

/**
 * Waits until a promise is settled, but no longer than so many milliseconds.
 *
 * @returns Whether it was fulfilled in time; what it does later is of no concern.
 * @throws What it is rejected with in time.
 */
export async function fulfilledWithin(limit: number, promise: Promise<unknown>): Promise<boolean> {
  let timer;
  const timeout = new Promise<boolean>((resolve) => timer = setTimeout(resolve, limit, false));
  try {
    return await Promise.race([promise.then(() => true), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
