/**
 * Counting who still calls what is deprecated. This is all that happens on the path of a request:
 * adding one to a number in memory.
 */

import type { Usage, UsageKey } from "../storage/ledger.ts";
import type { Phase } from "./policy.ts";

/** Clients told apart in one day; those that come after them count as one. */
const MAX_CLIENTS = 1_000;

/** Methods told apart; a client can make up any number of others. */
const METHODS = new Set(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]);

const OTHER = "(other)";
const CLASSES = [undefined, "1xx", "2xx", "3xx", "4xx", "5xx"];
const DAY = 86_400_000;

/** The product that leads a User-Agent field (RFC 9110 §10.1.5), at most 64 characters of it. */
const PRODUCT = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}/;

/** An answer, as far as it is counted. */
export interface CountedAnswer {
  /** The route's path, e.g. `/audio/:token`. */
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  readonly status: number;
  /** The User-Agent field, if there is one. */
  readonly userAgent: string | null;
}

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

/** Counts answers in memory, until they are taken. */
export class UsageMeter {
  /** By everything but the client, then by client. */
  #counts = new Map<string, Map<string, Usage>>();
  readonly #clients = new Set<string>();
  #day = "";
  #dayEnd = -Infinity;

  /**
   * Counts one answer.
   *
   * @param now Milliseconds since the epoch.
   */
  count(answer: CountedAnswer, now: number): void {
    if (now >= this.#dayEnd || now < this.#dayEnd - DAY) this.#startDay(now);
    const { route, phase } = answer;
    const method = METHODS.has(answer.method) ? answer.method : OTHER;
    const status = CLASSES[Math.floor(answer.status / 100)] ?? OTHER;
    const client = this.#admit(clientOf(answer.userAgent));
    const day = this.#day;

    const known = this.#counts.get(seriesOf({ day, route, method, phase, status }))?.get(client);
    if (known === undefined) {
      this.#add({ day, route, method, phase, status, client, calls: 1, first: now, last: now });
    } else {
      known.calls++;
      known.last = now;
    }
  }

  /** Hands over what was counted since the last time. */
  take(): Usage[] {
    const lines = [...this.#counts.values()].flatMap((clients) => [...clients.values()]);
    this.#counts = new Map();
    return lines;
  }

  /** Adds what was counted elsewhere. */
  add(lines: readonly Usage[]): void {
    for (const line of lines) this.#add(line);
  }

  #add(line: Usage): void {
    const series = seriesOf(line);
    let clients = this.#counts.get(series);
    if (clients === undefined) this.#counts.set(series, clients = new Map());
    const known = clients.get(line.client);
    if (known === undefined) {
      clients.set(line.client, { ...line });
    } else {
      known.calls += line.calls;
      known.first = Math.min(known.first, line.first);
      known.last = Math.max(known.last, line.last);
    }
  }

  #admit(client: string): string {
    if (this.#clients.has(client)) return client;
    if (this.#clients.size >= MAX_CLIENTS) return OTHER;
    this.#clients.add(client);
    return client;
  }

  #startDay(now: number): void {
    this.#dayEnd = (Math.floor(now / DAY) + 1) * DAY;
    this.#day = new Date(now).toISOString().slice(0, 10);
    this.#clients.clear();
  }
}

function seriesOf({ day, route, method, phase, status }: Omit<UsageKey, "client">): string {
  return `${day} ${route} ${method} ${phase} ${status}`;
}
