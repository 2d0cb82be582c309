/**
 * Giving up on an operation that cannot be ended.
 */

/** Waits for an operation, but no longer than until the signal is aborted. */
export function unlessAborted<T>(operation: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return operation;
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort);
  return Promise.race([promise, operation]) // the signal first
    .finally(() => signal.removeEventListener("abort", abort));
}
