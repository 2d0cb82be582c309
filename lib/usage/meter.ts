/** Counts calls to deprecated routes by client, in memory: no request waits for the ledger. */

import {
  type Impact,
  mergeRows,
  type ReleaseRow,
  type UsageRow,
} from "../storage/ledger/records.ts";
import type { AnswerClass, Counter, Meter } from "../server/counting.ts";
import { isBreaking } from "../lifecycle/refusal.ts";
import { METHODS } from "../server/route.ts";
import { OTHER } from "../http/client_name.ts";
import { callerOf, ClientNames } from "./client_names.ts";
import { Releases } from "./releases.ts";
import { dayOf } from "../storage/ledger/day.ts";

/** The counts of one class of answers, by client. For {@linkcode UsageMeter} only. */
export interface ClientCounter extends Counter {
  readonly common: Pick<UsageRow, "route" | "method" | "phase" | "status" | "impact">;
  readonly rows: Map<string, UsageRow>;
}

/**
 * Returns whether removal breaks calls answered like this. In a brownout and after the removal
 * nothing is looked up, so every valid token counts as breaking.
 */
export function impactOf({ method, phase, status, hasToken }: AnswerClass): Impact {
  if (!hasToken || (method !== "GET" && method !== "HEAD")) return "none";
  const isRefused = phase === "brownout" || phase === "removed";
  return isBreaking({ status, isRefused }) ? "breaking" : "none";
}

export class UsageMeter implements Meter {
  fault: string | undefined;
  /** Few, because methods and statuses are grouped into classes. */
  readonly #counters = new Map<string, ClientCounter>();
  readonly #names = new ClientNames();
  readonly #releases = new Releases();
  readonly #field: string | undefined;

  /** @param field The name of the field by which the operator knows clients, if there is one. */
  constructor(field?: string) {
    this.#field = field;
  }

  counterOf(answer: AnswerClass): ClientCounter {
    const { route, phase } = answer;
    const impact = impactOf(answer);
    const method = METHODS.includes(answer.method) ? answer.method : OTHER; // an invented one
    const status = `${Math.floor(answer.status / 100)}xx`;
    const key = `${route} ${method} ${phase} ${status} ${impact}`;
    let counter = this.#counters.get(key);
    if (counter === undefined) {
      const made: ClientCounter = {
        common: { route, method, phase, status, impact },
        rows: new Map(),
        count: (fields, instant) => this.#count(made, fields, instant),
      };
      this.#counters.set(key, counter = made);
    }
    return counter;
  }

  #count({ common, rows }: ClientCounter, fields: Headers, now: number): void {
    const { name, release } = callerOf(fields, this.#field);
    const client = this.#names.nameFor(name);
    let row = rows.get(client);
    if (row === undefined) {
      row = { day: dayOf(now), ...common, client, calls: 0, first: now, last: now };
      rows.set(client, row);
    }
    row.calls++;
    row.last = now;
    if (release === undefined || client !== name || common.impact === "none") return;
    this.#releases.count(client, release, now);
  }

  know(client: string): void {
    this.#names.know(client);
  }

  /**
   * Returns and resets the counts since the last call, and admits new client names. Calls of names
   * that are not admitted are in the rows of "(other)", which has no releases.
   *
   * @param now Milliseconds since the epoch.
   */
  take(now: number): { rows: UsageRow[]; releases: ReleaseRow[] } {
    const rows = [...this.#counters.values()].flatMap(({ rows }) => [...rows.values()]);
    for (const counter of this.#counters.values()) counter.rows.clear();
    const calls = new Map<string, number>();
    for (const row of rows) calls.set(row.client, (calls.get(row.client) ?? 0) + row.calls);
    const refused = this.#names.admit((client) => calls.get(client) ?? 0, now);
    const named = rows.map((row) => refused.has(row.client) ? { ...row, client: OTHER } : row);
    return { rows: mergeRows(named), releases: this.#releases.take(refused, now) };
  }
}
