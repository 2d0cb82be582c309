/** The deletion of expired days. */

import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import type { Ledger } from "./ledger.ts";

/** Milliseconds after which a ledger that refused is asked again. */
const RETRY_INTERVAL_MS = 3_600_000;

/** Deletes from a ledger the days that are no longer retained, once a day. */
export class Retention {
  readonly #days: number;
  /** The first day that was retained at the last deletion, if there was one. */
  #firstDay: string | undefined;
  /** When the ledger last refused, in milliseconds since the epoch. */
  #refusedAt = -Infinity;

  /** @param days The number of whole days to retain. */
  constructor(days: number) {
    this.#days = days;
  }

  /**
   * Deletes what has expired, unless that was done on the same day. The ledger refuses while it has
   * no evidence that the time is right, as on its first day; then it is asked again an hour later.
   *
   * @param now The ledger's time, in milliseconds since the epoch.
   */
  async apply(ledger: Pick<Ledger, "forget">, now: number): Promise<void> {
    const firstDay = dayOf(now - this.#days * DAY_MS);
    const sinceRefusal = now - this.#refusedAt; // negative if the record was started again
    const isTooSoon = sinceRefusal >= 0 && sinceRefusal < RETRY_INTERVAL_MS;
    if (firstDay === this.#firstDay || isTooSoon) return;
    if (await ledger.forget(firstDay, now)) this.#firstDay = firstDay;
    else this.#refusedAt = now;
  }
}
