/** The counts that are yet to be sent to the ledger. */

import { keyOf, MAX_PART_ROWS, type UsageCount } from "./records.ts";

/** Counts that are yet to be sent, one for each key. */
export class Backlog {
  readonly #counts = new Map<string, UsageCount>();

  /** Whether nothing is to be sent. */
  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  /** The number of calls in all counts. */
  get calls(): number {
    return [...this.#counts.values()].reduce((sum, { calls }) => sum + calls, 0);
  }

  /** Adds counts to those with the same key. */
  add(counts: readonly UsageCount[]): void {
    for (const count of counts) {
      const key = keyOf(count);
      const calls = (this.#counts.get(key)?.calls ?? 0) + count.calls;
      this.#counts.set(key, { ...count, calls });
    }
  }

  /** Returns the oldest counts, at most {@linkcode MAX_PART_ROWS}, and removes them. */
  takePart(): UsageCount[] {
    const counts = [...this.#counts.values()].slice(0, MAX_PART_ROWS);
    for (const count of counts) this.#counts.delete(keyOf(count));
    return counts;
  }
}
