/**
 * The handler's interface for counting responses of deprecated routes.
 */

import type { Phase } from "../lifecycle/policy.ts";

/** A class of responses that are counted together, by client. */
export interface AnswerClass {
  /** The route's path, e.g. `/audio/:token`. */
  readonly route: string;
  /** The request method. */
  readonly method: string;
  /** The phase in which the request came. */
  readonly phase: Phase;
  /** The status of the response. */
  readonly status: number;
  /** In a brownout, the status that the response would have had otherwise. */
  readonly replaces?: number | undefined;
  /** Whether the path has a well-formed token. */
  readonly hasToken: boolean;
}

/** Counts one class of responses. */
export interface Counter {
  /**
   * Counts one response.
   *
   * @param fields The fields of the request, which identify the client.
   * @param instant When the request came, in milliseconds since the epoch.
   */
  count(fields: Headers, instant: number): void;
}

/** Counts responses. */
export interface Meter {
  /** Returns the counter for a class of responses. Callers may keep it. */
  counterOf(answer: AnswerClass): Counter;

  /** Why the record of calls is interrupted, for the health check; `undefined` if it is not. */
  readonly fault: string | undefined;
}
