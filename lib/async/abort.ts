/** Waiting for operations that cannot be cancelled. */

import { abortable } from "@std/async/abortable";

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

/** Waits for an operation, or rejects as soon as the signal is aborted, if there is one. */
export function unlessAborted<T>(operation: Promise<T>, signal?: AbortSignal): Promise<T> {
  return signal === undefined ? operation : abortable(operation, signal);
}
