/**
 * The names under which clients are counted, and what new ones may cost. A client can call itself
 * anything, so new names get rows of their own at a limited rate, whereas a name that was counted
 * before keeps its own.
 */

import QuickLRU from "quick-lru";

/** The client of calls whose name was not admitted, or is none. */
export const OTHER = "(other)";

/** New names admitted at once. */
export const MAX_NEW_CLIENTS = 60;

/** Milliseconds after which one more is: no hour admits more than twice {@linkcode MAX_NEW_CLIENTS}. */
const NEW_CLIENT_EVERY = 60_000;

/** Names known, of the most recent: a week's new ones. Twice as many at most. */
const KNOWN = 10_000;

/** New names told apart between two flushes. */
const MAX_PENDING = 2_000;

/** The product that leads a User-Agent field (RFC 9110 §10.1.5), at most 64 characters of it. */
const PRODUCT = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}/;

/**
 * The name under which a client is counted: nothing of a person, an address or a token.
 *
 * @param userAgent e.g. `Overcast/3.1 (+https://overcast.fm/)`, which is "Overcast".
 * @returns "(none)" without a field, and "(other)" where it does not begin with a product.
 */
export function clientOf(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return "(none)";
  return PRODUCT.exec(userAgent)?.[0] ?? OTHER;
}

/** The names of one server's clients. */
export class ClientNames {
  readonly #known = new QuickLRU<string, true>({ maxSize: KNOWN });
  readonly #pending = new Set<string>();
  #allowance = MAX_NEW_CLIENTS;
  #allowedAt = -Infinity;

  constructor() {
    for (const name of ["(none)", OTHER]) this.know(name);
  }

  /** Lets a name keep its rows from now on, however many new ones come. */
  know(name: string): void {
    this.#known.set(name, true);
  }

  /** The name to count a call under until the next {@linkcode admit}. */
  nameFor(name: string): string {
    if (this.#known.get(name) || this.#pending.has(name)) return name;
    if (this.#pending.size >= MAX_PENDING) return OTHER;
    this.#pending.add(name);
    return name;
  }

  /**
   * Decides on the new names since the last time: those that called most are known from now on.
   *
   * @param callsOf How often a name called since then.
   * @param now Milliseconds since the epoch.
   * @returns The names that were not admitted.
   */
  admit(callsOf: (name: string) => number, now: number): ReadonlySet<string> {
    const elapsed = Math.max(0, now - this.#allowedAt); // a clock set back grants nothing
    this.#allowance = Math.min(MAX_NEW_CLIENTS, this.#allowance + elapsed / NEW_CLIENT_EVERY);
    this.#allowedAt = now;
    const names = [...this.#pending].filter((name) => !this.#known.get(name))
      .sort((a, b) => callsOf(b) - callsOf(a));
    this.#pending.clear();
    const admitted = names.splice(0, Math.floor(this.#allowance));
    this.#allowance -= admitted.length;
    for (const name of admitted) this.know(name);
    return new Set(names);
  }
}
