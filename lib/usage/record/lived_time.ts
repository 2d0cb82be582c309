/** The ledger's time, as one process lives through it. */

import type { Ledger } from "./ledger.ts";
import { type LedgerTime, MINUTE_MS } from "./records.ts";

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

  /** Returns the ledger's time, as far as it is known between two readings. */
  estimate(): number {
    return this.#reading.now + this.#lifetime() - this.#reading.lifetime;
  }

  /** Reads the ledger's time. */
  async read(ledger: Pick<Ledger, "time">): Promise<LedgerTime> {
    const before = this.#lifetime();
    const time = await ledger.time();
    const last = this.#reading;
    if (time.now - last.now - (before - last.lifetime) >= MINUTE_MS) this.#hasLapsed = true;
    this.#reading = { now: time.now, lifetime: this.#lifetime() };
    return time;
  }
}
