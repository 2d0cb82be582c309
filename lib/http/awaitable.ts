/**
 * What is there at once, or comes later. Whatever waits for a promise, and whoever waits for that,
 * takes about a tenth longer than a whole lookup that is there at once.
 */

/** A value, or the promise of one. */
export type Awaitable<T> = T | Promise<T>;

/** Goes on with a value: at once, when it is there. */
export function andThen<T, R>(
  value: Awaitable<T>,
  next: (value: T) => Awaitable<R>,
): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Runs an action, and another one when it fails, be that at once or later. */
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
