/** Waiting with a timeout. */

/**
 * Waits until a promise is settled, for `limit` milliseconds at most.
 *
 * @returns Whether the promise was fulfilled in time. A later rejection is ignored.
 * @throws The reason, if the promise is rejected in time.
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
