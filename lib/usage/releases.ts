/**
 * The releases of clients, counted beside their names. Clients can send any, so their number is
 * limited. Calls beyond the limits count for the client alone.
 */

import type { ReleaseRow } from "../storage/ledger/records.ts";
import { dayOf } from "../storage/ledger/day.ts";

/**
 * Releases recorded per UTC day, by one server: of one client, and of all together. No more unknown
 * ones are tracked between two flushes.
 */
export const [MAX_RELEASES_OF_CLIENT, MAX_RELEASES] = [20, 2_000];

/** The releases that one server counts. */
export class Releases {
  /** Those called since the last flush, by client and release. */
  readonly #rows = new Map<string, Map<string, ReleaseRow>>();
  #tracked = 0;
  /** Those recorded, by day. */
  readonly #known = new Map<string, Set<string>>();
  /** How many are recorded, by day and client. */
  readonly #counts = new Map<string, number>();

  /** @param now Milliseconds since the epoch. */
  count(client: string, release: string, now: number): void {
    let ofClient = this.#rows.get(client);
    if (ofClient === undefined) this.#rows.set(client, ofClient = new Map());
    let row = ofClient.get(release);
    if (row === undefined) {
      const day = dayOf(now);
      const isKnown = () => this.#known.get(day)?.has(`${client} ${release}`);
      if (this.#tracked >= MAX_RELEASES && !isKnown()) return;
      this.#tracked++;
      ofClient.set(release, row = { day, client, release, calls: 0, last: now });
    }
    row.calls++;
    row.last = now;
  }

  /**
   * Returns and resets the counts since the last call. Known releases come first, then those with
   * the most calls.
   *
   * @param refused The clients that have no rows of their own.
   * @param now Milliseconds since the epoch.
   */
  take(refused: ReadonlySet<string>, now: number): ReleaseRow[] {
    const rows = [...this.#rows.values()].flatMap((ofClient) => [...ofClient.values()])
      .filter(({ client }) => !refused.has(client))
      .map((row) => ({ ...row, day: dayOf(row.last) }))
      .sort((a, b) => b.calls - a.calls)
      .filter((row) => this.#admit(row));
    this.#rows.clear();
    this.#tracked = 0;
    for (const days of [this.#known, this.#counts]) {
      for (const key of days.keys()) if (!key.startsWith(dayOf(now))) days.delete(key);
    }
    return rows;
  }

  #admit({ day, client, release }: ReleaseRow): boolean {
    const known = this.#known.get(day) ?? new Set<string>();
    if (known.has(`${client} ${release}`)) return true;
    const count = this.#counts.get(`${day} ${client}`) ?? 0;
    if (known.size >= MAX_RELEASES || count >= MAX_RELEASES_OF_CLIENT) return false;
    this.#known.set(day, known.add(`${client} ${release}`));
    this.#counts.set(`${day} ${client}`, count + 1);
    return true;
  }
}
