/** What a process does for the record once a day: it deletes expired days, and finds deleted routes. */

import { DAY_MS, dayOf } from "../../http/timestamp.ts";
import type { Ledger } from "./ledger.ts";

/** Milliseconds after which a ledger that refused is asked again. */
const RETRY_INTERVAL_MS = 3_600_000;

/** The number of whole days before today in which calls to deleted routes count. */
const DELETED_DAYS = 30;

/** Deletes from a ledger the days that are no longer retained, once a day, a few rows at a time. */
export class Retention {
  readonly #days: number;
  /** The first day that was retained when everything before it was deleted, if it was. */
  #firstDay: string | undefined;
  /** When the ledger last refused, in milliseconds since the epoch. */
  #refusedAt = -Infinity;

  /** @param days The number of whole days to retain. */
  constructor(days: number) {
    this.#days = days;
  }

  /**
   * Deletes some of what has expired, unless that was done on the same day. The ledger refuses while
   * it has no evidence that the time is right, as on its first day; then it is asked again an hour
   * later.
   *
   * @param now The ledger's time, in milliseconds since the epoch.
   */
  async apply(ledger: Pick<Ledger, "forget">, now: number): Promise<void> {
    const firstDay = dayOf(now - this.#days * DAY_MS);
    const sinceRefusal = now - this.#refusedAt; // negative if the record was started again
    const isTooSoon = sinceRefusal >= 0 && sinceRefusal < RETRY_INTERVAL_MS;
    if (firstDay === this.#firstDay || isTooSoon) return;
    const outcome = await ledger.forget(firstDay, now);
    if (outcome === "done") this.#firstDay = firstDay;
    if (outcome === "refused") this.#refusedAt = now;
  }
}

/**
 * Returns a sentence for each route that was called in the last {@linkcode DELETED_DAYS} days, but is
 * not among those given: somebody has deleted it too early, or by mistake.
 *
 * @param routes The names of the routes that the process has.
 */
export async function deletedRoutes(
  ledger: Pick<Ledger, "time" | "callsToOthers">,
  routes: readonly string[],
): Promise<string[]> {
  const { now } = await ledger.time();
  const since = dayOf(now - DELETED_DAYS * DAY_MS);
  const all = await ledger.callsToOthers(routes, since);
  return [...new Set(all.map(({ route }) => route))].map((route) => {
    const callers = all.filter((caller) => caller.route === route);
    const calls = callers.reduce((sum, { calls }) => sum + calls, 0);
    const { client } = callers.reduce((a, b) => b.last > a.last ? b : a);
    const times = calls === 1 ? "once" : `${calls.toLocaleString("en-US")} times`;
    return `${route} is not served any more, but was called ${times} since ${since}, ` +
      `the last by ${client}`;
  });
}
