/** The handler's interface for counting responses of deprecated routes. */

import type { Moment } from "../lifecycle/policy.ts";

/** A class of responses that are counted together, by client. */
export interface AnswerClass {
  readonly route: string;
  readonly method: string;
  /** The route's phase when the request came. */
  readonly moment: Moment;
  readonly status: number;
  /** Whether the path has a well-formed token. */
  readonly hasToken: boolean;
}

export interface Counter {
  /**
   * Counts one response.
   *
   * @param fields The fields of the request, which identify the client.
   */
  count(fields: Headers): void;
}

export interface Meter {
  /** Returns the counter for a class of responses. Callers may keep it. */
  counterOf(answer: AnswerClass): Counter;

  /** What the health check says is wrong with the record of calls; `undefined` for nothing. */
  readonly fault: string | undefined;
}
