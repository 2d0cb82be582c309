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

/** Answers that are counted together, whoever asked. */
export interface AnswerClass {
  /** The route's path, e.g. `/audio/:token`. */
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  readonly status: number;
}

/** The count of one class of answers, by client. Only {@linkcode UsageMeter} makes and counts. */
export interface Tally {
  /** What all its lines share. */
  readonly common: Pick<Usage, "route" | "method" | "phase" | "status">;
  readonly lines: Map<string, Usage>;
  /** Some of the lines, by the User-Agent that counts there. */
  readonly byUserAgent: Map<string | null, Usage>;
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
  /** Of the current day. There are few: methods and statuses are told apart by class. */
  readonly #tallies = new Map<string, Tally>();
  /** Of days before. */
  #past: Usage[] = [];
  /** Of the day. */
  readonly #clients = new Set<string>();
  #day = "";
  #dayEnd = -Infinity;

  /** Finds what counts answers of a class. It may be kept. */
  tally(answer: AnswerClass): Tally {
    const { route, phase } = answer;
    const method = METHODS.has(answer.method) ? answer.method : OTHER;
    const status = CLASSES[Math.floor(answer.status / 100)] ?? OTHER;
    const key = [route, method, phase, status].join(" ");
    let tally = this.#tallies.get(key);
    if (tally === undefined) {
      tally = {
        common: { route, method, phase, status },
        lines: new Map(),
        byUserAgent: new Map(),
      };
      this.#tallies.set(key, tally);
    }
    return tally;
  }

  /**
   * Counts one answer.
   *
   * @param tally What {@linkcode tally} found for it.
   * @param userAgent The User-Agent field of the request, if there is one.
   * @param now Milliseconds since the epoch.
   */
  count(tally: Tally, userAgent: string | null, now: number): void {
    if (now >= this.#dayEnd || now < this.#dayEnd - DAY) this.#startDay(now);
    const line = tally.byUserAgent.get(userAgent) ?? this.#lineOf(tally, userAgent, now);
    line.calls++;
    line.last = now;
  }

  /** Hands over what was counted since the last time. */
  take(): Usage[] {
    this.#close();
    const lines = this.#past;
    this.#past = [];
    return lines;
  }

  #close(): void {
    for (const { lines, byUserAgent } of this.#tallies.values()) {
      this.#past.push(...lines.values());
      lines.clear();
      byUserAgent.clear();
    }
  }

  #lineOf({ common, lines, byUserAgent }: Tally, userAgent: string | null, now: number): Usage {
    const client = this.#admit(clientOf(userAgent));
    let line = lines.get(client);
    if (line === undefined) {
      line = { day: this.#day, ...common, client, calls: 0, first: now, last: now };
      lines.set(client, line);
    }
    const isShort = (userAgent?.length ?? 0) <= 256;
    if (isShort && byUserAgent.size < MAX_CLIENTS) byUserAgent.set(userAgent, line);
    return line;
  }

  #admit(client: string): string {
    if (!this.#clients.has(client) && this.#clients.size >= MAX_CLIENTS) return OTHER;
    this.#clients.add(client);
    return client;
  }

  #startDay(now: number): void {
    this.#close();
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
