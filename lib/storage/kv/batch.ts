/**
 * Reading many keys at once: each call of Deno KV wakes another thread, or crosses a network, and
 * reads ten keys for little more than one.
 */

import { guarded } from "./kv.ts";

/** Keys that KV reads in one call at most. */
const MAX_KEYS = 10;

/** Milliseconds that a read waits for a batch under way: it may be held up, or far away. */
const MAX_WAIT = 1;

interface Waiting {
  readonly key: Deno.KvKey;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads values in batches: what is asked for in one turn of the event loop, or while another batch
 * is under way, if that is not for long.
 */
export class BatchedReads {
  readonly #kv: Deno.Kv;
  #waiting: Waiting[] = [];
  #underWay = 0;
  #isSendDue = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

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
      else if (this.#underWay === 0) this.#sendSoon();
      else this.#timer ??= setTimeout(() => this.#send(), MAX_WAIT);
    });
  }

  /** Sends what is waiting after this turn, in which more may come. */
  #sendSoon(): void {
    if (this.#isSendDue) return;
    this.#isSendDue = true;
    setImmediate(() => {
      this.#isSendDue = false;
      if (this.#underWay === 0 && this.#waiting.length > 0) this.#send();
    });
  }

  async #send(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#underWay++;
    try {
      const keys = batch.map(({ key }) => key);
      const entries = await guarded("cannot read an item", () => this.#kv.getMany(keys));
      for (const [index, { resolve }] of batch.entries()) resolve(entries[index]?.value ?? null);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#underWay--;
    if (this.#underWay === 0 && this.#waiting.length > 0) this.#sendSoon();
  }
}
