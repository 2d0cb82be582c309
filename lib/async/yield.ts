/** Long work beside serving requests. */

/** Yields to pending requests between two parts of long work. */
export function yieldToRequests(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
