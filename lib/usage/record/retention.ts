/** The deletion of expired days. */

import { DAY_MS, dayOf } from "./day.ts";
import type { Ledger } from "./ledger.ts";

/** Deletes from a ledger the days that are no longer retained, once a day. */
export class Retention {
  readonly #days: number;
  /** The first day that was retained at the last deletion; empty before the first one. */
  #firstDay = "";

  /** @param days The number of whole days to retain. */
  constructor(days: number) {
    this.#days = days;
  }

  /**
   * Deletes what has expired, unless that was done on the same day. The ledger refuses while it has
   * no evidence that the time is right; then the next call tries again.
   *
   * @param now The ledger's time, in milliseconds since the epoch.
   */
  async apply(ledger: Pick<Ledger, "forget">, now: number): Promise<void> {
    const firstDay = dayOf(now - this.#days * DAY_MS);
    if (firstDay === this.#firstDay) return;
    if (await ledger.forget(firstDay, now)) this.#firstDay = firstDay;
  }
}
