/**
 * Checks of the objects in a bucket. A store bills every question, so each answer is reused, across
 * lookups and whatever is published meanwhile. No object is needed that only tells whether the
 * store answers: in each period, whatever is answered first tells that.
 */

import QuickLRU from "quick-lru";
import { StorageError } from "../errors/storage_error.ts";
import { type Generations, PERIOD_MS } from "./generations.ts";
import type { ContentReference, FailedRead } from "./item.ts";

/**
 * Milliseconds for which an object that was found sound is not asked about again. A lookup made at
 * the end of that time is reused for another period, and both together last a minute.
 */
const SOUND_MS = 60_000 - PERIOD_MS;

/** Milliseconds between two turns. */
const TURN_MS = 100;

/**
 * The same once a question has failed. A store that fails at once gets up to four requests for each
 * question, because the client retries, and then reads the store's identifier.
 */
const TURN_AFTER_FAILURE_MS = 400;

/** Milliseconds to wait for an answer once a question has failed, while nothing is answered. */
const PATIENCE_MS = 1_000;

/**
 * The maximum number of objects to remember. Each takes about 0.5 kB. `QuickLRU` keeps up to twice
 * as many.
 */
const MAX_OBJECTS = 10_000;

/** The fault that was found, if any. */
type Answer = StorageError | undefined;

/**
 * Asks the store about an object. Rejects if the store does not answer.
 *
 * @param read The read that failed, to be tried again; left out if none did.
 */
export type Ask = (read?: FailedRead) => Promise<Answer>;

/** What is known of an object. Instants are in milliseconds since the epoch. */
type Known =
  | { readonly state: "asked"; readonly answer: Promise<Answer> }
  | { readonly state: "sound"; readonly askedAt: number }
  | {
    readonly state: "at fault";
    readonly fault: StorageError;
    readonly foundAt: number;
    readonly read: FailedRead | undefined;
  }
  | { readonly state: "suspect"; readonly read: FailedRead };

/** An object that waits until the store answers. */
interface Waiting {
  readonly ask: () => void;
  /** Whether its turn has come. */
  isAsked: boolean;
  /** In milliseconds from any origin. */
  readonly since: number;
  readonly ended: Promise<Answer>;
  /** Ends the wait, with a failure if the store is taken not to answer. */
  readonly end: (failure?: StorageError) => void;
}

export class ObjectChecks {
  readonly #generations: Generations;
  readonly #clock: () => number;
  readonly #known = new QuickLRU<string, Known>({ maxSize: MAX_OBJECTS });
  /** The latest reading of the clock. */
  #latest = -Infinity;
  /** How often the store has answered. */
  #answers = 0;
  /** The latest period in which it has. */
  #answeredIn = -1;
  /** Why the latest question failed, unless the store has answered since. */
  #failure: StorageError | undefined;
  /** By object, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting>();
  /** When the latest turn was, in milliseconds from any origin. */
  #turnAt = -Infinity;
  #nextTurn: ReturnType<typeof setTimeout> | undefined;

  /** @param clock Returns the time in milliseconds since the epoch. */
  constructor(generations: Generations, clock: () => number) {
    this.#generations = generations;
    this.#clock = clock;
  }

  /**
   * Returns the fault of an object: what the store says now, or what it said of a sound object
   * within the last minute, or what was found wrong within the last five seconds. To get no answer
   * is a fault of this object alone if the store answers about others.
   *
   * Until the store has answered in this period, nothing else that is known counts. Callers then
   * take turns to ask, each about its own object: one that hangs says nothing about the others.
   */
  async faultOf(content: ContentReference, ask: Ask): Promise<StorageError | undefined> {
    const key = keyOf(content);
    const state = this.#knownOf(key)?.state;
    if (!this.#hasAnswered && (state === undefined || state === "sound")) {
      const failure = await this.#awaitAnswer(key, ask);
      if (failure !== undefined) return failure;
    }
    const known = this.#knownOf(key) ?? this.#ask(key, ask);
    if (known.state === "asked") return await known.answer;
    return known.state === "at fault" ? known.fault : undefined;
  }

  /** Returns what was found wrong with an object within the last five seconds, without asking. */
  faultFound(content: ContentReference): StorageError | undefined {
    const known = this.#knownOf(keyOf(content));
    return known?.state === "at fault" ? known.fault : undefined;
  }

  /** Takes note that the store has answered. */
  noteAnswer(): void {
    this.#answers++;
    this.#answeredIn = this.#generations.period;
    this.#failure = undefined;
    for (const { end } of this.#waiting.values()) end();
    this.#waiting.clear();
    clearTimeout(this.#nextTurn);
  }

  /** Takes note that a read of an object failed. The next check of it is to try that read again. */
  noteFailure(content: ContentReference, fault: StorageError, read: FailedRead): void {
    this.#noteFault(keyOf(content), fault, read);
  }

  /** Takes note that content was cut off. Before it is found sound again, its end is to be read. */
  noteCutOff(content: ContentReference, read: FailedRead): void {
    this.#known.set(keyOf(content), { state: "suspect", read });
  }

  get #hasAnswered(): boolean {
    return this.#answeredIn === this.#generations.period;
  }

  /** Returns what is known of an object; `undefined` if it has to be asked about. */
  #knownOf(key: string): Exclude<Known, { state: "suspect" }> | undefined {
    const now = this.#now();
    const known = this.#known.get(key);
    if (known === undefined || known.state === "suspect") return undefined;
    if (known.state === "asked") return known;
    const isValid = known.state === "sound"
      ? now - known.askedAt < SOUND_MS
      : now - known.foundAt < PERIOD_MS;
    return isValid ? known : undefined;
  }

  /** Returns the time. If the clock was set back, forgets what was known at a time to come. */
  #now(): number {
    const now = this.#clock();
    if (now < this.#latest) this.#known.clear();
    return this.#latest = now;
  }

  #noteFault(key: string, fault: StorageError, read: FailedRead | undefined): void {
    this.#known.set(key, { state: "at fault", fault, foundAt: this.#now(), read });
  }

  #ask(key: string, ask: Ask): Known {
    const before = this.#known.get(key);
    const read = before !== undefined && "read" in before ? before.read : undefined;
    const askedAt = this.#now();
    const answersBefore = this.#answers;
    const answer = ask(read).then((fault) => {
      this.noteAnswer();
      return fault;
    }, (error) => {
      if (!(error instanceof StorageError)) {
        this.#endWait(key); // for the caller to meet this answer
        throw error;
      }
      if (this.#answers === answersBefore) this.#noteSilence(key, error);
      return error;
    });
    const asked: Known = { state: "asked", answer };
    this.#known.set(key, asked);
    answer.then((fault) => {
      if (this.#known.get(key) !== asked) return; // meanwhile, a read has found more
      if (fault === undefined) this.#known.set(key, { state: "sound", askedAt });
      else this.#noteFault(key, fault, read);
    }, () => this.#known.delete(key));
    return asked;
  }

  /** Takes note that the store answered nothing while a question was in flight. */
  #noteSilence(key: string, failure: StorageError): void {
    this.#failure = failure;
    if (this.#hasAnswered) this.#generations.endPeriod(); // nothing known is relied on
    this.#endWait(key, failure);
    this.#takeTurns();
  }

  #endWait(key: string, failure?: StorageError): void {
    this.#waiting.get(key)?.end(failure);
    this.#waiting.delete(key);
  }

  /** Waits until the store answers. Returns why it is taken not to. */
  #awaitAnswer(key: string, ask: Ask): Promise<Answer> {
    const known = this.#waiting.get(key);
    if (known !== undefined) return known.ended;
    const { promise: ended, resolve } = Promise.withResolvers<Answer>();
    const since = performance.now();
    const asking = () => void this.#ask(key, ask);
    this.#waiting.set(key, { ask: asking, isAsked: false, since, ended, end: resolve });
    this.#takeTurns();
    return ended;
  }

  /** Asks about the next object when it is time, and ends the wait of those that waited too long. */
  #takeTurns(): void {
    clearTimeout(this.#nextTurn);
    const now = performance.now();
    const pause = this.#failure === undefined ? TURN_MS : TURN_AFTER_FAILURE_MS;
    for (const [key, { since }] of this.#waiting) {
      if (this.#failure === undefined || now - since < PATIENCE_MS) break;
      this.#endWait(key, this.#failure);
    }
    const next = this.#waiting.values().find(({ isAsked }) => !isAsked);
    if (next !== undefined && now - this.#turnAt >= pause) {
      this.#turnAt = now;
      next.isAsked = true;
      next.ask();
    }
    if (this.#waiting.size > 0) this.#nextTurn = setTimeout(() => this.#takeTurns(), TURN_MS);
  }
}

/** Identifies an object, and what it was when it was published. */
function keyOf({ digest, length, location, validator }: ContentReference): string {
  return `${digest} ${length} ${validator} ${location}`;
}
