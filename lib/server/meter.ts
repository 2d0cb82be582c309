/**
 * The responder's interface for counting answers of deprecated routes.
 */

import type { Phase } from "../lifecycle/policy.ts";

/** A class of answers that are counted together, by client. */
export interface AnswerClass {
  /** The route's path, e.g. `/audio/:token`. */
  readonly route: string;
  /** The request method. */
  readonly method: string;
  /** The phase in which the request came. */
  readonly phase: Phase;
  /** The status of the answer. */
  readonly status: number;
  /** Whether the path has a well-formed token. */
  readonly hasToken: boolean;
}

/** The counts of one class of answers, opaque except to the meter. */
export type Counter = object;

/** Counts answers. */
export interface Meter {
  /** Returns the counter for a class of answers. Callers may keep it. */
  counterOf(answer: AnswerClass): Counter;

  /**
   * Counts one answer.
   *
   * @param counter The result of {@linkcode Meter.counterOf} for it.
   * @param userAgent The request's User-Agent, if any.
   * @param now Milliseconds since the epoch.
   */
  count(counter: Counter, userAgent: string | null, now: number): void;
}
