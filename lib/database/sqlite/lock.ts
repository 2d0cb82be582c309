/**
 * Waits for locks that other processes hold. SQLite's calls block the thread, so they do not wait
 * for a lock themselves: they fail at once, and are retried.
 */

import { delay } from "@std/async/delay";

/** The pause between two attempts, in milliseconds. */
const RETRY_MS = 20;

/** SQLite's primary result code for a lock that another process holds. */
const SQLITE_BUSY = 5;

/** SQLite's message for it. */
const BUSY_MESSAGE = "database is locked";

/**
 * Retries an action while it fails because another process holds a lock.
 *
 * @param limit The time for retries, in milliseconds.
 * @param signal Ends the wait.
 * @throws The action's error, if it has another cause or the time is up.
 */
export async function retryWhileBusy<T>(
  limit: number,
  action: () => T,
  signal?: AbortSignal,
): Promise<T> {
  const end = performance.now() + limit;
  while (true) {
    try {
      return action();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error;
    }
    await delay(RETRY_MS);
    signal?.throwIfAborted();
  }
}

/** Returns whether an error was caused by a lock that another process holds. */
export function isBusy(error: unknown): boolean {
  const { cause, errcode, message } = Object(error);
  if (cause !== undefined) return isBusy(cause);
  // In Deno 2.9.6, errors from exec() and the constructor have no code. Errors from statements do
  // (denoland/deno#28289).
  return (errcode & 0xff) === SQLITE_BUSY || message === BUSY_MESSAGE;
}
