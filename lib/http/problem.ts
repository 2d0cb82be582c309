/** Errors as problem details (RFC 9457). */

import { type Field, type Outcome, textOutcome } from "./outcome.ts";

/** A kind of problem. */
export interface ProblemType {
  /** From 400 to 599. */
  readonly status: number;
  readonly title: string;
  /** Explains the problem, and what to do about it. */
  readonly meaning: string;
}

/** An occurrence of a problem. */
interface Problem {
  readonly status: number;
  /** The fields of the response besides those that describe its content. */
  readonly fields: readonly Field[];
  /** The problem type's URI reference; "about:blank" if left out. */
  readonly type?: string | undefined;
  /** The title of the type. That of "about:blank" is the reason phrase of the status (§4.2.1). */
  readonly title: string;
  /** Explains this occurrence, for humans. */
  readonly detail: string;
  /** A URI that identifies this occurrence. */
  readonly instance?: string | undefined;
  /** A URL reference to the requested resource's replacement, if there is one. */
  readonly successor?: string | undefined;
  /** A URL reference to the explanation of the retirement, if there is one. */
  readonly documentation?: string | undefined;
}

/** Returns the outcome that presents a problem as JSON. */
export function problemDetails(problem: Problem): Outcome {
  const { status, fields, type, title, detail, instance, successor, documentation } = problem;
  const members = { type, title, status, detail, instance, successor, documentation };
  const text = JSON.stringify(members);
  return textOutcome(status, { type: "application/problem+json", text, fields });
}
