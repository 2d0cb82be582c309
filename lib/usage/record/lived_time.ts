/** The ledger's time, as one process lives through it. */

import { type LedgerTime, SHORTEST_GAP_MS } from "./records.ts";

/** The ledger's time since a session began, and whether its process lived through all of it. */
export class LivedTime {
  readonly #lifetime: () => number;
  /** The last reading of the ledger's time, and the process's lifetime at that reading. */
  #reading: { readonly now: number; readonly lifetime: number };
  #hasLapsed = false;

  /**
   * @param began When the session began, by the ledger's time.
   * @param lifetime Returns the milliseconds that the process has lived through, from any origin.
   */
  constructor(began: number, lifetime: () => number) {
    this.#lifetime = lifetime;
    this.#reading = { now: began, lifetime: lifetime() };
  }

  /**
   * Whether, between two readings, the ledger's time advanced by a minute or more beyond the
   * process's lifetime: the machine slept, or a clock jumped.
   */
  get hasLapsed(): boolean {
    return this.#hasLapsed;
  }

  /**
   * Returns the instant of the ledger's time, in milliseconds since the epoch, that the process cannot
   * have lived through by now; 0 if it has lapsed.
   */
  end(): number {
    if (this.#hasLapsed) return 0;
    return this.#reading.now + this.#lifetime() - this.#reading.lifetime + SHORTEST_GAP_MS;
  }

  /** Reads the ledger's time by an action that returns it, if it does. */
  async read<Time extends LedgerTime | undefined>(action: () => Promise<Time>): Promise<Time> {
    const end = this.end();
    const time = await action();
    if (time === undefined) return time;
    this.#hasLapsed ||= time.now >= end;
    this.#reading = { now: time.now, lifetime: this.#lifetime() };
    return time;
  }
}
