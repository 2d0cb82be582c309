/**
 * A ledger in memory, for tests of what works with a ledger.
 */

import { type Ledger, retained, type Usage, type Watch } from "../../lib/storage/ledger.ts";
import { addUp } from "../../lib/usage/meter.ts";

/** A ledger that lasts as long as its object. */
export class MemoryLedger implements Ledger {
  #rows: Usage[] = [];
  #watches: Watch[] = [];
  #keptFrom: string | undefined;

  add(rows: readonly Usage[], onAdded: (rows: readonly Usage[]) => void): Promise<void> {
    this.#rows = addUp([...this.#rows, ...rows]);
    if (rows.length > 0) onAdded(rows);
    return Promise.resolve();
  }

  async *usage(fromDay: string): AsyncGenerator<Usage> {
    const rows = this.#rows.filter(({ day }) => day >= fromDay);
    for (const row of rows.toSorted((a, b) => a.day < b.day ? -1 : a.day > b.day ? 1 : 0)) {
      yield await Promise.resolve({ ...row });
    }
  }

  mark(watch: Watch): Promise<void> {
    const others = this.#watches.filter(({ server, from }) =>
      server !== watch.server || from !== watch.from
    );
    this.#watches = [...others, watch].sort((a, b) => a.from - b.from);
    return Promise.resolve();
  }

  watches(): Promise<Watch[]> {
    return Promise.resolve([...this.#watches]);
  }

  forget(beforeDay: string): Promise<void> {
    if (this.#keptFrom === undefined || this.#keptFrom < beforeDay) this.#keptFrom = beforeDay;
    this.#rows = this.#rows.filter(({ day }) => day >= beforeDay);
    this.#watches = retained(this.#watches, beforeDay);
    return Promise.resolve();
  }

  keptFrom(): Promise<string | undefined> {
    return Promise.resolve(this.#keptFrom);
  }
}
