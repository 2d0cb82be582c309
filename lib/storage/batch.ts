/**
 * Reading many keys at once: each call of Deno KV wakes another thread, or crosses a network, and
 * reads ten keys for little more than one.
 */

import { guarded } from "./kv.ts";

/** Keys that KV reads in one call at most. */
const MAX_KEYS = 10;

/** Milliseconds of a call from which on nothing waits for another: a network lies between. */
const SLOW = 5;

interface Waiting {
  readonly key: Deno.KvKey;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads values in batches: what is asked for in one turn of the event loop, and while another
 * batch is under way, if that is not for long.
 */
export class BatchedReads {
  readonly #kv: Deno.Kv;
  #waiting: Waiting[] = [];
  #isSendDue = false;
  #underWay = 0;
  /** How long the last batch took, in milliseconds. */
  #took = 0;

  /** @param kv Stays the caller's to close. */
  constructor(kv: Deno.Kv) {
    this.#kv = kv;
  }

  /**
   * Reads the value of a key; `null` when there is none.
   *
   * @throws {StorageError} When KV fails.
   */
  read(key: Deno.KvKey): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, resolve, reject });
      if (this.#waiting.length === MAX_KEYS) this.#send();
      else this.#sendSoon();
    });
  }

  /** Sends what is waiting after this turn, unless it is to wait for a batch under way. */
  #sendSoon(): void {
    const mayLeave = () => this.#underWay === 0 || this.#took > SLOW;
    if (this.#isSendDue || !mayLeave()) return;
    this.#isSendDue = true;
    setImmediate(() => {
      this.#isSendDue = false;
      if (this.#waiting.length > 0 && mayLeave()) this.#send();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#waiting;
    this.#waiting = [];
    this.#underWay++;
    const start = performance.now();
    try {
      const keys = batch.map(({ key }) => key);
      const entries = await guarded("cannot read an item", () => this.#kv.getMany(keys));
      for (const [index, { resolve }] of batch.entries()) resolve(entries[index]?.value ?? null);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#took = performance.now() - start;
    this.#underWay--;
    if (this.#waiting.length > 0) this.#sendSoon();
  }
}
