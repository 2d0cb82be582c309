/**
 * A ledger in memory.
 */

import { addUp, type Ledger, retained, type Usage, type Watch } from "../ledger.ts";

/** A ledger that lasts as long as its object. */
export class MemoryLedger implements Ledger {
  #rows: Usage[] = [];
  #watches: Watch[] = [];
  #keptFrom: string | undefined;

  /** @inheritdoc */
  add(rows: readonly Usage[], onAdded: (rows: readonly Usage[]) => void): Promise<void> {
    this.#rows = addUp([...this.#rows, ...rows]);
    if (rows.length > 0) onAdded(rows);
    return Promise.resolve();
  }

  /** @inheritdoc */
  async *usage(fromDay: string): AsyncGenerator<Usage> {
    const rows = this.#rows.filter(({ day }) => day >= fromDay);
    for (const row of rows.toSorted((a, b) => a.day < b.day ? -1 : a.day > b.day ? 1 : 0)) {
      yield await Promise.resolve({ ...row });
    }
  }

  /** @inheritdoc */
  mark(watch: Watch): Promise<void> {
    const others = this.#watches.filter(({ server, from }) =>
      server !== watch.server || from !== watch.from
    );
    this.#watches = [...others, watch].sort((a, b) => a.from - b.from);
    return Promise.resolve();
  }

  /** @inheritdoc */
  watches(): Promise<Watch[]> {
    return Promise.resolve([...this.#watches]);
  }

  /** @inheritdoc */
  forget(beforeDay: string): Promise<void> {
    if (this.#keptFrom === undefined || this.#keptFrom < beforeDay) this.#keptFrom = beforeDay;
    this.#rows = this.#rows.filter(({ day }) => day >= beforeDay);
    this.#watches = retained(this.#watches, beforeDay);
    return Promise.resolve();
  }

  /** @inheritdoc */
  keptFrom(): Promise<string | undefined> {
    return Promise.resolve(this.#keptFrom);
  }
}
