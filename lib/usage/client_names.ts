/**
 * Client names for counting. Clients can send any name, so the number of new ones that get rows of
 * their own each day is limited, to 182,500 a year if no server is restarted. Known names keep
 * theirs.
 */

import { IDENTIFYING, NONE, OTHER, type Product, productOf } from "../http/client_name.ts";
import { dayOf } from "../storage/ledger/day.ts";

/** New names admitted per UTC day, by one server. */
export const MAX_NEW_NAMES_A_DAY = 500;

/** New names tracked between two flushes. */
const MAX_PENDING_NAMES = 2_000;

/** What the gate calls itself when it asks through the public URL, by two names. */
export const QUESTIONERS = ["media-head-gate-1", "media-head-gate-2"] as const;

/** What our own clients send in User-Agent: the library's checker, and the gate. */
const OWN = new Set<string | null>(["media-head-check", ...QUESTIONERS]);

/** The names of our own clients, which the gate ignores. Every server knows them. */
export const OWN_CLIENTS: readonly string[] = [...OWN].map((name) => `app ${name}`);

/** What the operator's field can hold, e.g. a consumer's id from a gateway. */
const ID = /^[!-~](?:[ -~]{0,62}[!-~])?$/;

/** The DNS name in an Origin or Referer (RFC 6454, RFC 9110 §10.1.3); neither path nor query. */
const SITE = /^https?:\/\/((?=[a-z0-9.-]*[a-z])[a-z0-9.-]{1,75})(?::\d+)?(?:\/|$)/i;

/**
 * Returns the name of the client that sent a request: ours, "id …" by the operator's field, "site …"
 * for a browser, or "app …" by User-Agent, which alone gives a release. Only the operator's field can
 * add an address or token to the name.
 *
 * @param field The name of the field by which the operator knows clients, if there is one.
 */
export function callerOf(fields: Headers, field: string | undefined): Product {
  const userAgent = fields.get("user-agent");
  if (OWN.has(userAgent)) return { name: `app ${userAgent}` };
  const id = field === undefined ? null : fields.get(field);
  if (id !== null) return { name: ID.test(id) ? `id ${id}` : OTHER };
  if (userAgent?.startsWith("Mozilla/")) { // a browser
    const site = siteOf(fields.get("origin")) ?? siteOf(fields.get("referer"));
    if (site !== undefined) return { name: site };
  }
  return appOf(productOf(userAgent));
}

/** The clients of recent products: remembering one is cheaper than building its name again. */
const apps = new WeakMap<Product, Product>();

function appOf(product: Product): Product {
  if (product.name === NONE || product.name === OTHER) return product;
  const app = apps.get(product) ?? { ...product, name: `app ${product.name}` };
  apps.set(product, app);
  return app;
}

function siteOf(url: string | null): string | undefined {
  const site = SITE.exec(url ?? "")?.[1]?.toLowerCase();
  return site === undefined ? undefined : IDENTIFYING.test(site) ? OTHER : `site ${site}`;
}

/** The client names of one server. */
export class ClientNames {
  readonly #known = new Set([NONE, OTHER, ...OWN_CLIENTS]);
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
   * Admits the new names since the last call, up to the day's limit, those with the most calls
   * first.
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
