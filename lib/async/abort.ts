/** Waiting for operations that cannot be cancelled. */

import { abortable } from "@std/async/abortable";

/** Milliseconds after which a wait is reported. */
const PATIENCE_MS = 2_000;

/** How to wait for an operation that others may delay. */
export interface Patience {
  readonly signal?: AbortSignal | undefined;
  /** Called with the name of an operation that takes more than two seconds. */
  readonly onWait?: ((name: string) => void) | undefined;
}

/**
 * Waits for an operation that others may delay, or rejects once the signal is aborted.
 *
 * @param name Names the operation for `onWait`.
 */
export async function waitFor<T>(
  name: string,
  operation: Promise<T>,
  { signal, onWait }: Patience,
): Promise<T> {
  const timer = onWait && setTimeout(onWait, PATIENCE_MS, name);
  try {
    return await unlessAborted(operation, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for an operation, or rejects once the signal (if any) is aborted. */
export function unlessAborted<T>(operation: Promise<T>, signal?: AbortSignal): Promise<T> {
  return signal === undefined ? operation : abortable(operation, signal);
}
