/**
 * Client names for counting. Clients can send any User-Agent, so only so many new names get rows of
 * their own each day; known names keep theirs. That is 182,500 names a year at most.
 */

import { dayOf } from "./day.ts";

/** The client name for calls whose own is invalid or was not admitted. */
export const OTHER = "(other)";

/** New names admitted per UTC day, by one server. */
export const MAX_NEW_NAMES_A_DAY = 500;

/** New names tracked between two flushes. */
const MAX_PENDING_NAMES = 2_000;

/** The first product name in a User-Agent (RFC 9110 §10.1.5), up to 64 characters. */
const PRODUCT = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}/;

/** A UUID at the beginning, which may be a token or identify an installation. */
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;

/**
 * Returns the name under which to count a client. It contains no personal data, address or token.
 *
 * @param userAgent e.g. `Overcast/3.1 (+https://overcast.fm/)`, which gives "Overcast".
 * @returns "(none)" without a User-Agent, "(other)" if it starts with a UUID or with no product.
 */
export function clientOf(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return "(none)";
  return UUID.test(userAgent) ? OTHER : PRODUCT.exec(userAgent)?.[0] ?? OTHER;
}

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
