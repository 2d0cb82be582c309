/**
 * A ledger in Deno KV. Counts are atomic sums, and the first and last sights atomic minima and
 * maxima.
 *
 * Keys: `["call", day, route, method, phase, status, impact, client, fact]` holds one number,
 * where fact is "calls", "first" or "last"; `["watch", from, server]` holds the rest of a watch;
 * `["kept"]` holds the start of the first day that is kept.
 */

import { guarded, listKv } from "./kv.ts";
import { type Ledger, retained, type Usage, type UsageKey, type Watch } from "../ledger.ts";
import type { Fact } from "./ledger_keys.ts";
import { StorageError } from "../storage.ts";

/** KV takes 1,000 mutations and 80 KiB of keys in one commit; a row takes three of up to 300 B. */
const ROWS_PER_COMMIT = 80;

const KEPT = ["kept"];

/** A ledger in Deno KV. */
export class KvLedger implements Ledger {
  readonly #kv: Deno.Kv;

  /** @param kv Stays the caller's to close. */
  constructor(kv: Deno.Kv) {
    this.#kv = kv;
  }

  /** @inheritdoc */
  async add(rows: readonly Usage[], onAdded: (rows: readonly Usage[]) => void): Promise<void> {
    for (let start = 0; start < rows.length; start += ROWS_PER_COMMIT) {
      const part = rows.slice(start, start + ROWS_PER_COMMIT);
      await guarded("cannot add to the ledger", () => {
        const operation = this.#kv.atomic();
        for (const row of part) {
          operation.sum(usageKey(row, "calls"), BigInt(row.calls));
          operation.min(usageKey(row, "first"), BigInt(row.first));
          operation.max(usageKey(row, "last"), BigInt(row.last));
        }
        return operation.commit();
      });
      onAdded(part);
    }
  }

  /** @inheritdoc */
  async *usage(fromDay: string): AsyncGenerator<Usage> {
    const { UsageKeyParts } = await import("./ledger_keys.ts");
    let key: UsageKey | undefined;
    let count: Record<string, number> = {};
    // The facts of a row are neighbours: "calls", "first", "last".
    for await (const entry of listKv(this.#kv, { start: ["call", fromDay], end: ["calm"] })) {
      const parts = UsageKeyParts.safeParse(entry.key);
      if (!parts.success || !(entry.value instanceof Deno.KvU64)) {
        throw new StorageError("kv", "a row of the ledger is malformed");
      }
      const [, day, route, method, phase, status, impact, client, fact] = parts.data;
      if (fact === "calls") {
        key = { day, route, method, phase, status, impact, client };
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

  /** @inheritdoc */
  async mark({ server, from, ...rest }: Watch): Promise<void> {
    await guarded("cannot add to the ledger", () => this.#kv.set(["watch", from, server], rest));
  }

  /** @inheritdoc */
  async watches(): Promise<Watch[]> {
    const { WatchKeyParts, WatchValue } = await import("./ledger_keys.ts");
    const watches = [];
    for await (const { key, value } of listKv(this.#kv, { prefix: ["watch"] })) {
      const parts = WatchKeyParts.safeParse(key);
      const rest = WatchValue.safeParse(value);
      if (!parts.success || !rest.success) {
        throw new StorageError("kv", "a watch of the ledger is malformed");
      }
      const [, from, server] = parts.data;
      watches.push({ server, from, ...rest.data });
    }
    return watches;
  }

  /** @inheritdoc */
  async forget(beforeDay: string): Promise<void> {
    const start = BigInt(Date.parse(beforeDay));
    const message = "cannot remove from the ledger";
    await guarded(message, () => this.#kv.atomic().max(KEPT, start).commit());
    const remove = (key: Deno.KvKey) => guarded(message, () => this.#kv.delete(key));
    for await (const { key } of listKv(this.#kv, { start: ["call"], end: ["call", beforeDay] })) {
      await remove(key);
    }
    const watches = await this.watches();
    const kept = new Set(retained(watches, beforeDay));
    for (const watch of watches) {
      if (!kept.has(watch)) await remove(["watch", watch.from, watch.server]);
    }
  }

  /** @inheritdoc */
  async keptFrom(): Promise<string | undefined> {
    const { value } = await guarded("cannot read the ledger", () => this.#kv.get(KEPT));
    return value instanceof Deno.KvU64
      ? new Date(Number(value.value)).toISOString().slice(0, 10)
      : undefined;
  }
}

function usageKey(row: UsageKey, fact: Fact): Deno.KvKey {
  const { day, route, method, phase, status, impact, client } = row;
  return ["call", day, route, method, phase, status, impact, client, fact];
}
