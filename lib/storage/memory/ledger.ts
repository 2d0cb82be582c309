/**
 * A ledger in memory.
 */

import { addUp, type Heartbeat, type Ledger, retained, type UsageRow } from "../ledger.ts";

/** A ledger that lasts as long as its object. */
export class MemoryLedger implements Ledger {
  #rows: UsageRow[] = [];
  #heartbeats: Heartbeat[] = [];
  #keptFrom: string | undefined;

  /** @inheritdoc */
  add(rows: readonly UsageRow[], onAdded: (rows: readonly UsageRow[]) => void): Promise<void> {
    this.#rows = addUp([...this.#rows, ...rows]);
    if (rows.length > 0) onAdded(rows);
    return Promise.resolve();
  }

  /** @inheritdoc */
  async *usage(fromDay: string): AsyncGenerator<UsageRow> {
    const rows = this.#rows.filter(({ day }) => day >= fromDay);
    for (const row of rows.toSorted((a, b) => a.day < b.day ? -1 : a.day > b.day ? 1 : 0)) {
      yield await Promise.resolve({ ...row });
    }
  }

  /** @inheritdoc */
  recordHeartbeat(heartbeat: Heartbeat): Promise<void> {
    const others = this.#heartbeats.filter(({ server, from }) =>
      server !== heartbeat.server || from !== heartbeat.from
    );
    this.#heartbeats = [...others, heartbeat].sort((a, b) => a.from - b.from);
    return Promise.resolve();
  }

  /** @inheritdoc */
  heartbeats(): Promise<Heartbeat[]> {
    return Promise.resolve([...this.#heartbeats]);
  }

  /** @inheritdoc */
  forget(beforeDay: string): Promise<void> {
    if (this.#keptFrom === undefined || this.#keptFrom < beforeDay) this.#keptFrom = beforeDay;
    this.#rows = this.#rows.filter(({ day }) => day >= beforeDay);
    this.#heartbeats = retained(this.#heartbeats, beforeDay);
    return Promise.resolve();
  }

  /** @inheritdoc */
  keptFrom(): Promise<string | undefined> {
    return Promise.resolve(this.#keptFrom);
  }
}
