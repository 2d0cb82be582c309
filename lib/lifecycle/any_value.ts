/**
 * Reading a value of which nothing is known, such as what a handler has thrown or an option has
 * returned. Reading can throw: an object may have no prototype, or be a proxy that was revoked.
 */

const UNREADABLE = "a value that cannot be read";

/** Returns what a function reads of a value, or the fallback if it throws. */
export function readOr<Result>(fallback: Result, read: () => Result): Result {
  try {
    return read();
  } catch {
    return fallback;
  }
}

/** Returns an error as its name and message, and any other value as its own text. */
export function valueText(value: unknown): string {
  return readOr(
    UNREADABLE,
    () => value instanceof Error ? `${value.name}: ${value.message}` : String(value),
  );
}

/** Prints an error after a text that says what failed. Never throws. */
export function printFailure(
  text: string,
  error: unknown,
  level: "error" | "warn" = "error",
): void {
  try {
    console[level](text, error);
  } catch { // it cannot be inspected
    readOr(undefined, () => console[level](text, valueText(error)));
  }
}
