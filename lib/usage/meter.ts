/**
 * Counting who still calls what is deprecated. This is all that happens on the path of a request:
 * adding one to a number in memory.
 */

import { addUp, type Impact, type UsageRow } from "../storage/ledger.ts";
import type { AnswerClass, Meter } from "../server/meter.ts";
import { ClientNames, clientOf, OTHER } from "./client_names.ts";

/** User-Agents remembered for a class of answers between two flushes, and how long they may be. */
const [MAX_USER_AGENTS, MAX_USER_AGENT_LENGTH] = [1_000, 256];

/** Methods told apart: those that a deprecated route takes. A client can make up any others. */
const METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Statuses of calls that removal does not break: nothing was there for them. */
const REFUSED = new Set([400, 404, 405, 410]);

const CLASSES = [undefined, "1xx", "2xx", "3xx", "4xx", "5xx"];
const DAY = 86_400_000;

/** The count of one class of answers, by client. Only {@linkcode UsageMeter} makes and counts. */
export interface ClientCounter {
  /** What all its rows share. */
  readonly common: Pick<UsageRow, "route" | "method" | "phase" | "status" | "impact">;
  readonly rows: Map<string, UsageRow>;
  /** Some of the rows, by the User-Agent that counts there. */
  readonly byUserAgent: Map<string | null, UsageRow>;
}

/**
 * What removal does to calls that were answered so. In a brownout and after the removal nobody
 * looks whether the token names an item, so that every valid one counts as breaking.
 */
export function impactOf({ method, phase, status, hasToken }: AnswerClass): Impact {
  if (!hasToken || (method !== "GET" && method !== "HEAD")) return "none";
  if (phase === "brownout" || phase === "removed") return "breaking";
  return REFUSED.has(status) ? "none" : "breaking";
}

/** Counts answers in memory, until they are taken. */
export class UsageMeter implements Meter {
  /** Of the current day. There are few: methods and statuses are told apart by class. */
  readonly #counters = new Map<string, ClientCounter>();
  /** Of days before. */
  #past: UsageRow[] = [];
  readonly #names = new ClientNames();
  #day = "";
  #dayEnd = -Infinity;

  /** Finds what counts answers of a class. It may be kept. */
  counterOf(answer: AnswerClass): ClientCounter {
    const { route, phase } = answer;
    const impact = impactOf(answer);
    const method = METHODS.has(answer.method) ? answer.method : OTHER;
    const status = CLASSES[Math.floor(answer.status / 100)] ?? OTHER;
    const key = `${route} ${method} ${phase} ${status} ${impact}`;
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      counter = {
        common: { route, method, phase, status, impact },
        rows: new Map(),
        byUserAgent: new Map(),
      };
      this.#counters.set(key, counter);
    }
    return counter;
  }

  /**
   * Counts one answer.
   *
   * @param counter What {@linkcode counterOf} found for it.
   * @param userAgent The User-Agent field of the request, if there is one.
   * @param now Milliseconds since the epoch.
   */
  count(counter: ClientCounter, userAgent: string | null, now: number): void {
    if (now >= this.#dayEnd || now < this.#dayEnd - DAY) this.#startDay(now);
    const row = counter.byUserAgent.get(userAgent) ?? this.#rowOf(counter, userAgent, now);
    row.calls++;
    row.last = now;
  }

  /** Lets a client that was counted before keep its rows, however many new ones there are. */
  know(client: string): void {
    this.#names.know(client);
  }

  /**
   * Returns what was counted since the last time, and admits new names of clients; the calls of
   * those that are not admitted are in rows of "(other)".
   *
   * @param now Milliseconds since the epoch.
   */
  take(now: number): UsageRow[] {
    this.#close();
    const rows = this.#past;
    this.#past = [];
    const calls = new Map<string, number>();
    for (const row of rows) calls.set(row.client, (calls.get(row.client) ?? 0) + row.calls);
    const refused = this.#names.admit((client) => calls.get(client) ?? 0, now);
    return addUp(
      rows.map((row) => refused.has(row.client) ? { ...row, client: OTHER } : row),
    );
  }

  #close(): void {
    for (const { rows, byUserAgent } of this.#counters.values()) {
      this.#past.push(...rows.values());
      rows.clear();
      byUserAgent.clear();
    }
  }

  #rowOf(
    { common, rows, byUserAgent }: ClientCounter,
    userAgent: string | null,
    now: number,
  ): UsageRow {
    const client = this.#names.nameFor(clientOf(userAgent));
    let row = rows.get(client);
    if (row === undefined) {
      row = { day: this.#day, ...common, client, calls: 0, first: now, last: now };
      rows.set(client, row);
    }
    const isShort = (userAgent?.length ?? 0) <= MAX_USER_AGENT_LENGTH;
    if (isShort && byUserAgent.size < MAX_USER_AGENTS) byUserAgent.set(userAgent, row);
    return row;
  }

  #startDay(now: number): void {
    this.#close();
    this.#dayEnd = (Math.floor(now / DAY) + 1) * DAY;
    this.#day = new Date(now).toISOString().slice(0, 10);
  }
}
