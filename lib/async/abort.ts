/**
 * Abandoning an operation that cannot be cancelled, and telling that one takes long.
 */

/** Milliseconds after which a wait is told. */
const PATIENCE_MS = 2_000;

/** How this process waits for what others may hold up. A command sets it; a server does not. */
export const patience: {
  /** Ends the wait for a lock. */
  signal?: AbortSignal;
  /** Called with what is waited for, once that takes more than two seconds. */
  onWait?: (what: string) => void;
} = {};

/** Waits for an operation that others may hold up, or rejects once the signal is aborted. */
export async function waitFor<T>(
  what: string,
  operation: Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const timer = patience.onWait && setTimeout(patience.onWait, PATIENCE_MS, what);
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
