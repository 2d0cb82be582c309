/**
 * Checks of the objects in a bucket. A store bills every question, so each answer is reused, across
 * lookups and whatever is published meanwhile. No object is needed that only tells whether the
 * store answers: in each period, the first check to be answered tells that.
 */

import QuickLRU from "quick-lru";
import type { StorageError } from "../errors/storage_error.ts";
import { type Generations, PERIOD_MS } from "./generations.ts";
import type { ContentReference } from "./item.ts";

/**
 * Milliseconds for which an object that was found sound is not asked about again. A lookup made at
 * the end of that time is reused for another period, and both together last a minute.
 */
const SOUND_MS = 60_000 - PERIOD_MS;

/** Milliseconds after a question without an answer until the store is asked again. */
const UNANSWERED_MS = 1_000;

/**
 * The maximum number of checks to keep. Each takes about 0.5 kB. `QuickLRU` keeps up to twice as
 * many.
 */
const MAX_CHECKS = 10_000;

/** A check in flight, or one that is over. */
interface Check {
  /** When the store was asked, in milliseconds since the epoch. */
  readonly askedAt: number;
  /** The period in which it was asked. */
  readonly period: number;
  /** The fault that was found, if any. Rejects if the store does not answer. */
  readonly answer: Promise<StorageError | undefined>;
  /** What came of it; undefined while it is in flight. */
  outcome?: "sound" | "fault" | "no answer";
}

/** Asks the store about an object. Rejects if it does not answer. */
type Ask = () => Promise<StorageError | undefined>;

export class ObjectChecks {
  readonly #generations: Generations;
  /** By object. Checks that were not answered are left out. */
  readonly #checks = new QuickLRU<string, Check>({ maxSize: MAX_CHECKS });
  /** The latest period in which a check was asked that was answered. */
  #answeredIn = -1;
  /** The check for which all others wait, until it is answered. */
  #question: Check | undefined;

  constructor(generations: Generations) {
    this.#generations = generations;
  }

  /**
   * Returns the fault of an object: what the store says now, or what it said of a sound object
   * within the last minute, or of one at fault within this period. Until the store has answered in
   * this period, all callers wait for the same check.
   *
   * @param now Milliseconds since the epoch.
   * @throws {StorageError} When the store does not answer.
   */
  async faultOf(
    content: ContentReference,
    now: number,
    ask: Ask,
  ): Promise<StorageError | undefined> {
    const key = keyOf(content);
    if (this.#answeredIn !== this.#generations.period) await this.#requireAnswer(key, now, ask);
    const known = this.#checks.get(key);
    const check = known && this.#isReusable(known, now) ? known : this.#ask(key, now, ask);
    return await check.answer;
  }

  /** Forgets the check of an object, because reading the object failed. */
  discard(content: ContentReference): void {
    this.#checks.delete(keyOf(content));
  }

  #isReusable({ outcome, askedAt, period }: Check, now: number): boolean {
    if (outcome === "fault") return period === this.#generations.period;
    return outcome === undefined || isWithin(SOUND_MS, askedAt, now);
  }

  /** Waits until the store has answered a check, of whatever object. */
  async #requireAnswer(key: string, now: number, ask: Ask): Promise<void> {
    const known = this.#question;
    const isAskedAgain = known?.outcome !== undefined &&
      !isWithin(UNANSWERED_MS, known.askedAt, now);
    if (known === undefined || isAskedAgain) this.#question = this.#ask(key, now, ask);
    await this.#question?.answer;
  }

  #ask(key: string, now: number, ask: Ask): Check {
    const { period } = this.#generations;
    const check: Check = { askedAt: now, period, answer: ask() };
    this.#checks.set(key, check);
    check.answer.then((fault) => {
      check.outcome = fault === undefined ? "sound" : "fault";
      this.#answeredIn = Math.max(this.#answeredIn, period);
      this.#question = undefined;
    }, () => {
      check.outcome = "no answer";
      if (this.#checks.get(key) === check) this.#checks.delete(key);
      this.#generations.endPeriod(); // nothing known is relied on until the store answers
    });
    return check;
  }
}

/** Identifies an object, and what it was when it was published. */
function keyOf({ digest, length, location, validator }: ContentReference): string {
  return `${digest} ${length} ${validator} ${location}`;
}

/** Returns whether an instant is less than so long ago; it is not if the clock was set back since. */
function isWithin(milliseconds: number, instant: number, now: number): boolean {
  return now >= instant && now - instant < milliseconds;
}
