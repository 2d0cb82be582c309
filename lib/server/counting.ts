/** The handler's interface for counting responses of deprecated routes. */

import type { Phase } from "../lifecycle/policy.ts";

/** A class of responses that are counted together, by client. */
export interface AnswerClass {
  readonly route: string;
  readonly method: string;
  readonly phase: Phase;
  readonly status: number;
  /** Whether the path has a well-formed token. */
  readonly hasToken: boolean;
}

export interface Counter {
  /**
   * Counts one response.
   *
   * @param fields The fields of the request, which identify the client.
   * @param instant When the request came, in milliseconds since the epoch.
   */
  count(fields: Headers, instant: number): void;
}

export interface Meter {
  /** Returns the counter for a class of responses. Callers may keep it. */
  counterOf(answer: AnswerClass): Counter;

  /** Why the record of calls is interrupted, as the health check says; `undefined` if it is not. */
  readonly fault: string | undefined;
}
