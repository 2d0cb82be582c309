/**
 * Counting answers of deprecated routes, as the responder sees it.
 */

import type { Phase } from "../lifecycle/policy.ts";

/** Answers that are counted together, whoever asked. */
export interface AnswerClass {
  /** The route's path, e.g. `/audio/:token`. */
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  readonly status: number;
  /** Whether the path holds a token that can be valid. */
  readonly hasToken: boolean;
}

/** The count of one class of answers: the meter's own. */
export type Tally = object;

/** Counts answers. */
export interface Meter {
  /** Finds what counts answers of a class. It may be kept. */
  tally(answer: AnswerClass): Tally;

  /**
   * Counts one answer.
   *
   * @param tally What {@linkcode Meter.tally} found for it.
   * @param userAgent The User-Agent field of the request, if there is one.
   * @param now Milliseconds since the epoch.
   */
  count(tally: Tally, userAgent: string | null, now: number): void;
}
