/**
 * Counting answers of deprecated routes, as the responder sees it.
 */

import type { Phase } from "../lifecycle/policy.ts";

/** Answers that are counted together, whoever asked. */
export interface AnswerClass {
  /** The route's path, e.g. `/audio/:token`. */
  readonly route: string;
  /** The request method. */
  readonly method: string;
  /** The phase in which the request came. */
  readonly phase: Phase;
  /** The status of the answer. */
  readonly status: number;
  /** Whether the path holds a token that can be valid. */
  readonly hasToken: boolean;
}

/** The count of one class of answers: the meter's own. */
export type Counter = object;

/** Counts answers. */
export interface Meter {
  /** Finds what counts answers of a class. It may be kept. */
  counterOf(answer: AnswerClass): Counter;

  /**
   * Counts one answer.
   *
   * @param counter What {@linkcode Meter.counterOf} found for it.
   * @param userAgent The User-Agent field of the request, if there is one.
   * @param now Milliseconds since the epoch.
   */
  count(counter: Counter, userAgent: string | null, now: number): void;
}
