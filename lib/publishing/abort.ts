/**
 * Giving up on an operation that cannot be ended.
 */

/** Waits for an operation, but no longer than until the signal is aborted. */
export function unlessAborted<T>(operation: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return operation;
  signal.throwIfAborted();
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  return Promise.race([operation, promise])
    .finally(() => signal.removeEventListener("abort", abort));
}
