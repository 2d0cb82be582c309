/** Waiting for operations that cannot be cancelled. */

/** Milliseconds after which a wait is reported. */
const PATIENCE_MS = 2_000;

/** How to wait for an operation that others may hold up. */
export interface Patience {
  readonly signal?: AbortSignal | undefined;
  /** Called with the name of an operation that takes more than two seconds. */
  readonly onWait?: ((what: string) => void) | undefined;
}

/**
 * Waits for an operation that others may hold up, or rejects once the signal is aborted.
 *
 * @param what Names the operation.
 */
export async function waitFor<T>(
  what: string,
  operation: Promise<T>,
  { signal, onWait }: Patience,
): Promise<T> {
  const timer = onWait && setTimeout(onWait, PATIENCE_MS, what);
  try {
    return await unlessAborted(operation, signal);
  } finally {
    clearTimeout(timer);
  }
}

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
