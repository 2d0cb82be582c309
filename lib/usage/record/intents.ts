/**
 * The intents of one process. It answers a call only while the ledger holds its intent for the
 * route, so that the record knows that somebody may have called before anybody is answered.
 */

import { fulfilledWithin } from "../../async/deadline.ts";
import { type HeartbeatIntents, type Intent, LEASE_MS } from "./records.ts";

/** How long after its arrival a call waits for an intent, in milliseconds. */
export const PATIENCE_MS = 2_000;

/** How long it waits at least, in milliseconds, because a lookup may have taken all that time. */
const LEAST_PATIENCE_MS = 250;

/** The time between two attempts while the ledger takes none, in milliseconds. */
const RETRY_INTERVAL_MS = 1_000;

/** The age at which an intent is renewed, in milliseconds. */
const RENEWAL_AGE_MS = 3_600_000;

/** An intent is given up when its route had no call for so long, in milliseconds. */
const QUIET_MS = 600_000;

/** How long it is a fault that an intent was not taken, in milliseconds. */
const FAULT_MS = 60_000;

/** An instant by two clocks: while a machine sleeps, one stands still, and one can be set. */
interface Instant {
  /** Milliseconds that the process has lived through, from any origin. */
  readonly lifetime: number;
  /** Milliseconds since the epoch, by the machine's clock. */
  readonly time: number;
}

/** The intents that the ledger holds for a route. */
interface Held {
  /** More than one if calls are in flight that came under an earlier one. */
  readonly ids: readonly string[];
  /** When the last one was first sent to be written, or all of them to be renewed. */
  sent: Instant;
  /** When the last call came, by the process's lifetime. */
  usedAt: number;
}

interface IntentsOptions {
  /**
   * Writes an intent to the ledger.
   *
   * @param isWanted Returns whether the intent was not given up yet. If it was, none is written.
   * @returns Whether it is in the ledger now. It is not if the session has changed meanwhile.
   * @throws If it is not known whether it is there.
   */
  readonly write: (
    intent: Pick<Intent, "id" | "route">,
    isWanted: () => boolean,
  ) => Promise<boolean>;
  /** Resolves once the session is known as it is in the ledger, as far as possible. */
  readonly catchUp: () => Promise<void>;
  /** Returns the time in milliseconds since the epoch. */
  readonly clock: () => number;
  /** Returns the milliseconds that the process has lived through, from any origin. */
  readonly lifetime: () => number;
}

/** The part of a heartbeat that {@linkcode Intents.confirm} needs to know again. */
export interface PendingHeartbeat {
  readonly intents: Omit<HeartbeatIntents, "at" | "sequence">;
  readonly sent: Instant;
}

export class Intents {
  readonly #options: IntentsOptions;
  readonly #held = new Map<string, Held>();
  /** The calls in flight to each route: they have arrived, but are not counted yet. */
  readonly #inFlight = new Map<string, number>();
  /** The ids of the intents that are being written. */
  readonly #asked = new Set<string>();
  readonly #asking = new Map<string, Promise<boolean>>();
  /** When the last attempt began, by the process's lifetime, if it failed. */
  #failedAt: number | undefined;
  /**
   * How many heartbeats are due until the ledger has no intents but those that the process holds.
   * Two, once one was given up: after the first, one that lands late is void, and the second deletes
   * it.
   */
  #due = 0;
  #isClosed = false;

  constructor(options: IntentsOptions) {
    this.#options = options;
  }

  /** Whether a heartbeat has nothing to say of intents. */
  get isEmpty(): boolean {
    return this.#held.size === 0 && this.#asked.size === 0 && this.#due === 0;
  }

  /** Whether the ledger did not take the last intent, and was asked for it within a minute. */
  get areRefused(): boolean {
    return this.#failedAt !== undefined &&
      this.#options.lifetime() - this.#failedAt < FAULT_MS;
  }

  /**
   * Returns whether a call to a route may be answered now. If not, {@linkcode hold} asks for an
   * intent.
   */
  isHeld(route: string): boolean {
    const held = this.#held.get(route);
    if (held === undefined || this.#isClosed) return false;
    const now = this.#now();
    if (!isWithin(LEASE_MS, held.sent, now)) return false;
    held.usedAt = now.lifetime;
    return true;
  }

  /**
   * Asks for an intent for a route, unless it is held. Waits until two seconds after the call's
   * arrival at most; while the ledger takes none, mostly not at all. Never rejects.
   *
   * @param arrived When the call arrived, in milliseconds since the epoch. Default: now.
   * @returns Whether a call to the route may be answered.
   */
  async hold(route: string, arrived: number = this.#options.clock()): Promise<boolean> {
    if (this.isHeld(route)) return true;
    if (this.#isClosed) return false;
    if (this.#failedAt !== undefined) {
      const passed = this.#options.lifetime() - this.#failedAt;
      if (this.#asking.size > 0 || passed < RETRY_INTERVAL_MS) return false;
    }
    const asking = this.#asking.get(route) ?? this.#ask(route);
    this.#asking.set(route, asking);
    const left = PATIENCE_MS - (this.#options.clock() - arrived); // a clock can be set
    const limit = Math.min(PATIENCE_MS, Math.max(LEAST_PATIENCE_MS, left));
    return await fulfilledWithin(limit, asking) && await asking;
  }

  /** Notes that a call to a route has arrived. No heartbeat settles the route until it has left. */
  arrive(route: string): void {
    this.#inFlight.set(route, (this.#inFlight.get(route) ?? 0) + 1);
  }

  /** Notes that such a call was counted, or that its client has gone. */
  leave(route: string): void {
    const others = (this.#inFlight.get(route) ?? 0) - 1;
    if (others > 0) this.#inFlight.set(route, others);
    else this.#inFlight.delete(route);
  }

  /** Whether calls are in flight to a route for which no intent is held. */
  get hasUnheldCalls(): boolean {
    return [...this.#inFlight.keys()].some((route) => !this.#held.has(route));
  }

  /** Holds no more, because the last heartbeat is due. */
  close(): void {
    this.#isClosed = true;
  }

  /**
   * Returns what the next heartbeat says, and gives up what is not needed any more: from now on, a
   * call to such a route asks for a new intent. Call it at once after the counts were taken.
   */
  takeHeartbeat(): PendingHeartbeat {
    const now = this.#now();
    for (const [route, { usedAt }] of this.#held) {
      if (this.#inFlight.has(route)) continue;
      if (!this.#isClosed && now.lifetime - usedAt < QUIET_MS) continue;
      this.#held.delete(route);
      this.#expectOthers();
    }
    const held = [...this.#held];
    const idsOf = (some: typeof held) => some.flatMap(([, { ids }]) => ids);
    return {
      sent: now,
      intents: {
        kept: [...idsOf(held), ...this.#isClosed ? [] : this.#asked],
        settled: idsOf(held.filter(([route]) => !this.#inFlight.has(route))),
        renewed: idsOf(held.filter(([, { sent }]) => !isWithin(RENEWAL_AGE_MS, sent, now))),
      },
    };
  }

  /** Notes that a heartbeat was recorded. */
  confirm({ intents: { renewed }, sent }: PendingHeartbeat): void {
    this.#due = Math.max(0, this.#due - 1);
    for (const held of this.#held.values()) {
      if (held.ids.every((id) => renewed.includes(id))) held.sent = sent;
    }
  }

  /** Notes that the session was replaced. Only some of its intents are still in the ledger. */
  keepOnly(ids: readonly string[]): void {
    for (const [route, held] of this.#held) {
      if (!held.ids.every((id) => ids.includes(id))) this.#held.delete(route);
    }
    this.#asked.clear(); // what is being written is void, or the new session has it
    this.#expectOthers();
  }

  /** Notes that the ledger may have intents that the process does not hold. */
  #expectOthers(): void {
    this.#due = 2;
  }

  #now(): Instant {
    const { clock, lifetime } = this.#options;
    return { lifetime: lifetime(), time: clock() };
  }

  async #ask(route: string): Promise<boolean> {
    const began = this.#options.lifetime();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<"timeout">((resolve) =>
      timer = setTimeout(resolve, PATIENCE_MS, "timeout")
    );
    // The connection may have broken since the last use, as after a restart of the database.
    let mayRepeat = this.#failedAt === undefined;
    let outcome: Outcome | "timeout" = "void";
    try {
      while (outcome === "void" && !this.#isClosed) {
        outcome = await this.#tryOnce(route, timeout);
        if (outcome !== "failed" || !mayRepeat) continue;
        mayRepeat = false;
        outcome = "void";
      }
    } finally {
      clearTimeout(timer);
      this.#asking.delete(route);
      this.#failedAt = outcome === "held" ? undefined : began;
    }
    return outcome === "held";
  }

  /** Writes an intent. If it is void, waits until the session is known as it is. */
  async #tryOnce(route: string, timeout: Promise<"timeout">): Promise<Outcome | "timeout"> {
    const id = crypto.randomUUID();
    this.#asked.add(id);
    const outcome = await Promise.race([timeout, this.#write(route, id)]);
    this.#asked.delete(id);
    if (outcome === "timeout") this.#expectOthers();
    if (outcome !== "void" || this.#isClosed) return outcome;
    const caughtUp = this.#options.catchUp().then(() => "void" as const);
    return await Promise.race([timeout, caughtUp]);
  }

  /** Writes an intent, and holds it, unless it was given up meanwhile. */
  async #write(route: string, id: string): Promise<Outcome> {
    const sent = this.#now();
    try {
      const isWanted = () => this.#asked.has(id) && !this.#isClosed;
      const isWritten = await this.#options.write({ id, route }, isWanted);
      if (!isWritten || !this.#asked.has(id)) return "void";
    } catch {
      this.#expectOthers();
      return "failed";
    }
    const now = this.#now();
    if (this.#isClosed || !isWithin(LEASE_MS, sent, now)) {
      this.#expectOthers();
      return "failed";
    }
    const ids = [...this.#held.get(route)?.ids ?? [], id];
    this.#held.set(route, { ids, sent, usedAt: now.lifetime });
    return "held";
  }
}

/** The outcome of an attempt. A void intent is not in the ledger, and will not be. */
type Outcome = "held" | "void" | "failed";

function isWithin(limit: number, sent: Instant, now: Instant): boolean {
  const [lived, passed] = [now.lifetime - sent.lifetime, now.time - sent.time];
  return lived >= 0 && lived < limit && passed >= 0 && passed < limit;
}
