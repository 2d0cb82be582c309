/**
 * Counting who still calls what is deprecated. This is all that happens on the path of a request:
 * adding one to a number in memory.
 */

import type { Usage } from "../storage/ledger.ts";
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

/** Lines by what they share and then by client; each level is told apart by one part of the key. */
type Lines = Map<string, Map<string, Map<string, Map<string, Map<string, Usage>>>>>;

/** Counts answers in memory, until they are taken. */
export class UsageMeter {
  /** Of the current day, by route, method, phase, status and client: no key is ever put together. */
  #lines: Lines = new Map();
  /** Of days before. */
  #past: Usage[] = [];
  /** Clients of the day, by the User-Agent that they were read from. */
  readonly #names = new Map<string | null, string>();
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
    const { route, phase, userAgent } = answer;
    const method = METHODS.has(answer.method) ? answer.method : OTHER;
    const status = CLASSES[Math.floor(answer.status / 100)] ?? OTHER;
    const client = this.#names.get(userAgent) ?? this.#admit(userAgent);

    const known = this.#lines.get(route)?.get(method)?.get(phase)?.get(status)?.get(client);
    if (known !== undefined) {
      known.calls++;
      known.last = now;
      return;
    }
    const day = this.#day;
    this.#add({ day, route, method, phase, status, client, calls: 1, first: now, last: now });
  }

  /** Hands over what was counted since the last time. */
  take(): Usage[] {
    const lines = [...this.#past, ...linesIn(this.#lines)];
    this.#past = [];
    this.#lines = new Map();
    return lines;
  }

  #add(line: Usage): void {
    const byMethod = getOrAdd(this.#lines, line.route, () => new Map());
    const byPhase = getOrAdd(byMethod, line.method, () => new Map());
    const byStatus = getOrAdd(byPhase, line.phase, () => new Map());
    getOrAdd(byStatus, line.status, () => new Map()).set(line.client, line);
  }

  #admit(userAgent: string | null): string {
    const name = clientOf(userAgent);
    const isKnown = this.#clients.has(name);
    if (!isKnown && this.#clients.size >= MAX_CLIENTS) return OTHER;
    this.#clients.add(name);
    const isShort = (userAgent?.length ?? 0) <= 256;
    if (isShort && this.#names.size < MAX_CLIENTS) this.#names.set(userAgent, name);
    return name;
  }

  #startDay(now: number): void {
    this.#past.push(...linesIn(this.#lines));
    this.#lines = new Map();
    this.#names.clear();
    this.#clients.clear();
    this.#dayEnd = (Math.floor(now / DAY) + 1) * DAY;
    this.#day = new Date(now).toISOString().slice(0, 10);
  }
}

/** Adds lines up, so that each client has one for all that is the same about its calls. */
export function addUp(lines: readonly Usage[]): Usage[] {
  const sums = new Map<string, Usage>();
  for (const line of lines) {
    const { day, route, method, phase, status, client } = line;
    const key = [day, route, method, phase, status, client].join(" ");
    const sum = sums.get(key);
    if (sum === undefined) {
      sums.set(key, { ...line });
    } else {
      sum.calls += line.calls;
      sum.first = Math.min(sum.first, line.first);
      sum.last = Math.max(sum.last, line.last);
    }
  }
  return [...sums.values()];
}

function linesIn(lines: Lines): Usage[] {
  return [...lines.values()]
    .flatMap((methods) => [...methods.values()])
    .flatMap((phases) => [...phases.values()])
    .flatMap((statuses) => [...statuses.values()])
    .flatMap((clients) => [...clients.values()]);
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, value = make());
  return value;
}
