/**
 * Values that may be available synchronously. Each `await` adds about a tenth to the cost of a
 * synchronous lookup.
 */

/** A value, or a promise of one. */
export type Awaitable<T> = T | Promise<T>;

/** Calls `next` with a value, synchronously if it is available. */
export function andThen<T, R>(
  value: Awaitable<T>,
  next: (value: T) => Awaitable<R>,
): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Runs an action, and recovers if it throws or rejects. */
export function attempt<T>(
  action: () => Awaitable<T>,
  recover: (error: unknown) => Awaitable<T>,
): Awaitable<T> {
  try {
    const value = action();
    return value instanceof Promise ? value.catch(recover) : value;
  } catch (error) {
    return recover(error);
  }
}
