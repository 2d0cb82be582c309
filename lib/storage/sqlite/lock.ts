/**
 * Locks that other processes hold. SQLite's calls hold the thread, so none ever waits for a lock:
 * what is refused is tried again later.
 */

/** Milliseconds until what a lock refused is tried again. */
const RETRY = 20;

/** SQLite's primary result code for a lock that somebody else holds, and the message with it. */
const [SQLITE_BUSY, BUSY_MESSAGE] = [5, "database is locked"];

/**
 * Tries an action until it succeeds, as long as it fails for a lock that somebody else holds.
 *
 * @param limit Milliseconds.
 * @throws What the action throws for another reason, or at the end.
 */
export async function retryWhileBusy<T>(limit: number, action: () => T): Promise<T> {
  const end = performance.now() + limit;
  while (true) {
    try {
      return action();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

/** Whether a lock that somebody else holds is what an error comes from. */
export function isBusy(error: unknown): boolean {
  const { cause, errcode, message } = Object(error);
  if (cause !== undefined) return isBusy(cause);
  // What exec() and the constructor throw has no code in Deno 2.9.6.
  return (errcode & 0xff) === SQLITE_BUSY || message === BUSY_MESSAGE;
}

/** The error of something that a lock refused without an error of SQLite's own. */
export function busyError(): Error {
  return new Error(BUSY_MESSAGE);
}
