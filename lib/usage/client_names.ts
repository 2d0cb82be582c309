/**
 * Client names for counting. Clients can send any User-Agent, so only so many new names get rows of
 * their own each day; known names keep theirs. That is 182,500 names a year at most.
 */

import { OTHER } from "../http/client_name.ts";
import { dayOf } from "./day.ts";

/** New names admitted per UTC day, by one server. */
export const MAX_NEW_NAMES_A_DAY = 500;

/** New names tracked between two flushes. */
const MAX_PENDING_NAMES = 2_000;

/** The client names of one server. */
export class ClientNames {
  readonly #known = new Set(["(none)", OTHER]);
  readonly #pending = new Set<string>();
  /** The day of the last admission, and how many it has left. */
  #day = "";
  #left = 0;

  /** Marks a name as known, so that it keeps its own rows. */
  know(name: string): void {
    this.#known.add(name);
  }

  /** Returns the name to count a call under until the next {@linkcode admit}. */
  nameFor(name: string): string {
    if (this.#known.has(name) || this.#pending.has(name)) return name;
    if (this.#pending.size >= MAX_PENDING_NAMES) return OTHER;
    this.#pending.add(name);
    return name;
  }

  /**
   * Admits the new names since the last call, those with the most calls first, as far as the day
   * allows.
   *
   * @param callsOf Returns the number of calls of a name since then.
   * @param now Milliseconds since the epoch.
   * @returns The names that were not admitted.
   */
  admit(callsOf: (name: string) => number, now: number): ReadonlySet<string> {
    const day = dayOf(now);
    if (day !== this.#day) [this.#day, this.#left] = [day, MAX_NEW_NAMES_A_DAY];
    const names = [...this.#pending.difference(this.#known)]
      .sort((a, b) => callsOf(b) - callsOf(a));
    this.#pending.clear();
    const admitted = names.splice(0, this.#left);
    this.#left -= admitted.length;
    for (const name of admitted) this.know(name);
    return new Set(names);
  }
}
