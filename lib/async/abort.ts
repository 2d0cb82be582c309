/**
 * Abandoning an operation that cannot be cancelled.
 */

/** Waits for an operation, or rejects as soon as the signal is aborted. */
export function unlessAborted<T>(operation: Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return operation;
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort);
  return Promise.race([promise, operation]) // an aborted signal wins
    .finally(() => signal.removeEventListener("abort", abort));
}
