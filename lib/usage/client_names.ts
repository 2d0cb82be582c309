/**
 * Client names for counting, rate-limited. Clients can send any User-Agent, so new names get their
 * own rows at a limited rate; known names keep theirs.
 */

import QuickLRU from "quick-lru";

/** The client name for calls whose own is invalid or was not admitted. */
export const OTHER = "(other)";

/** The burst of new names admitted. */
export const MAX_NEW_CLIENTS = 60;

/** Milliseconds between further admissions: at most 2 * {@linkcode MAX_NEW_CLIENTS} an hour. */
const NEW_CLIENT_EVERY = 60_000;

/** Most recent names kept, enough for a week of admissions. The LRU may hold twice as many. */
const KNOWN = 10_000;

/** New names tracked between two flushes. */
const MAX_PENDING = 2_000;

/** The first product name in a User-Agent (RFC 9110 §10.1.5), up to 64 characters. */
const PRODUCT = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}/;

/**
 * Returns the name under which to count a client. It contains no personal data, address or token.
 *
 * @param userAgent e.g. `Overcast/3.1 (+https://overcast.fm/)`, which gives "Overcast".
 * @returns "(none)" without a User-Agent, "(other)" if it does not start with a product.
 */
export function clientOf(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return "(none)";
  return PRODUCT.exec(userAgent)?.[0] ?? OTHER;
}

/** The client names of one server. */
export class ClientNames {
  readonly #known = new QuickLRU<string, true>({ maxSize: KNOWN });
  readonly #pending = new Set<string>();
  #allowance = MAX_NEW_CLIENTS;
  #allowedAt = -Infinity;

  constructor() {
    for (const name of ["(none)", OTHER]) this.know(name);
  }

  /** Marks a name as known, so that it keeps its own rows. */
  know(name: string): void {
    this.#known.set(name, true);
  }

  /** Returns the name to count a call under until the next {@linkcode admit}. */
  nameFor(name: string): string {
    if (this.#known.get(name) || this.#pending.has(name)) return name;
    if (this.#pending.size >= MAX_PENDING) return OTHER;
    this.#pending.add(name);
    return name;
  }

  /**
   * Admits the new names since the last call, those with the most calls first, as far as the rate
   * allows.
   *
   * @param callsOf Returns the number of calls of a name since then.
   * @param now Milliseconds since the epoch.
   * @returns The names that were not admitted.
   */
  admit(callsOf: (name: string) => number, now: number): ReadonlySet<string> {
    const elapsed = Math.max(0, now - this.#allowedAt); // 0 if the clock was set back
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
