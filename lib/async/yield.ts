/** Serving requests during long work. */

/** Yields to pending requests between parts of long work. */
export function yieldToRequests(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
