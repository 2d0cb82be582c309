/**
 * The ledger: who called the deprecated routes, in Deno KV. Counts are atomic sums, and the first
 * and last sights atomic minima and maxima, so that any number of servers share one ledger.
 *
 * Keys: `["usage", day, route, method, phase, status, client, fact]` holds one number, where fact
 * is "calls", "first" or "last"; `["beat", from, server]` holds the time until which a server that
 * began to count at `from` has handed in all that it counted.
 */

import type { Phase } from "../lifecycle/policy.ts";
import { guarded, listKv } from "./kv.ts";
import type { Fact } from "./ledger_keys.ts";
import { StorageError } from "./storage.ts";

/** What was called, and by whom. */
export interface UsageKey {
  /** UTC, e.g. `2027-01-31`. */
  readonly day: string;
  /** The route's path, e.g. `/audio/:token`. */
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  /** The class of the status, e.g. `2xx`. */
  readonly status: string;
  /** The product that called, without its version. */
  readonly client: string;
}

/** One line of the ledger: who called what, how often, and when. */
export interface Usage extends UsageKey {
  calls: number;
  /** Milliseconds since the epoch, as is `last`. */
  first: number;
  last: number;
}

/** A stretch of time in which a server was counting: milliseconds since the epoch. */
export interface Watch {
  readonly server: string;
  readonly from: number;
  /** Everything counted before this is in the ledger. */
  readonly until: number;
}

/** KV takes 1,000 mutations and 80 KiB of keys in one commit; a line takes three of up to 300 B. */
const LINES_PER_COMMIT = 80;

/** A ledger in Deno KV. Every method throws {@linkcode StorageError} when KV fails. */
export class Ledger {
  readonly #kv: Deno.Kv;

  /** @param kv Stays the caller's to close. */
  constructor(kv: Deno.Kv) {
    this.#kv = kv;
  }

  /**
   * Adds to the counts.
   *
   * @param onAdded Told of every part that is in the ledger for good, so that after a fault only
   *   the rest is added again.
   */
  async add(lines: readonly Usage[], onAdded: (lines: readonly Usage[]) => void): Promise<void> {
    for (let start = 0; start < lines.length; start += LINES_PER_COMMIT) {
      const part = lines.slice(start, start + LINES_PER_COMMIT);
      await guarded("cannot add to the ledger", () => {
        const operation = this.#kv.atomic();
        for (const line of part) {
          operation.sum(usageKey(line, "calls"), BigInt(line.calls));
          operation.min(usageKey(line, "first"), BigInt(line.first));
          operation.max(usageKey(line, "last"), BigInt(line.last));
        }
        return operation.commit();
      });
      onAdded(part);
    }
  }

  /**
   * Marks how far a server has come.
   *
   * @param expireIn Milliseconds after which the mark goes away by itself.
   */
  async beat({ server, from, until }: Watch, expireIn: number): Promise<void> {
    await guarded(
      "cannot add to the ledger",
      () => this.#kv.set(["beat", from, server], until, { expireIn }),
    );
  }

  /** The lines of the days from one on, in the order of days, read bit by bit. */
  async *usage(fromDay: string): AsyncGenerator<Usage> {
    const { UsageKeyParts } = await import("./ledger_keys.ts");
    let key: UsageKey | undefined;
    let count: Record<string, number> = {};
    // The facts of a line are neighbours: "calls", "first", "last".
    for await (const entry of listKv(this.#kv, { start: ["usage", fromDay], end: ["usagf"] })) {
      const parts = UsageKeyParts.safeParse(entry.key);
      if (!parts.success || !(entry.value instanceof Deno.KvU64)) {
        throw new StorageError("kv", "a line of the ledger is malformed");
      }
      const [, day, route, method, phase, status, client, fact] = parts.data;
      if (fact === "calls") {
        key = { day, route, method, phase, status, client };
        count = {};
      }
      count[fact] = Number(entry.value.value);
      const { calls, first, last } = count;
      if (key === undefined || fact !== "last") continue;
      if (calls !== undefined && first !== undefined && last !== undefined) {
        yield { ...key, calls, first, last };
      }
    }
  }

  /** When servers were counting, in the order in which they began. */
  async watches(): Promise<Watch[]> {
    const { BeatKeyParts } = await import("./ledger_keys.ts");
    const watches = [];
    for await (const { key, value } of listKv(this.#kv, { prefix: ["beat"] })) {
      const parts = BeatKeyParts.safeParse(key);
      if (!parts.success || typeof value !== "number") {
        throw new StorageError("kv", "a beat of the ledger is malformed");
      }
      const [, from, server] = parts.data;
      watches.push({ server, from, until: value });
    }
    return watches;
  }

  /**
   * Removes the days before one. Sums cannot be given a time to expire, so a server does this
   * once a day.
   */
  async forget(beforeDay: string): Promise<void> {
    const selector = { start: ["usage"], end: ["usage", beforeDay] };
    for await (const { key } of listKv(this.#kv, selector)) {
      await guarded("cannot remove from the ledger", () => this.#kv.delete(key));
    }
  }
}

function usageKey(line: UsageKey, fact: Fact): Deno.KvKey {
  const { day, route, method, phase, status, client } = line;
  return ["usage", day, route, method, phase, status, client, fact];
}
