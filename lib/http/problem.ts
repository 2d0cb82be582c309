/**
 * Errors as problem details (RFC 9457).
 */

import { STATUS_TEXT } from "@std/http/status";
import { type Answer, textAnswer } from "./answer.ts";

/** A problem type. */
export interface ProblemType {
  /** From 400 to 599. */
  readonly status: number;
  /** A short name. */
  readonly title: string;
  /** What it means, and what to do about it. */
  readonly meaning: string;
}

/** An error, before the members that depend on its route are added. */
export interface Problem extends Omit<Answer, "content"> {
  /**
   * The problem type's URI reference and title. Without it, the type is "about:blank": the status
   * says everything (§4.2.1).
   */
  readonly type?: { readonly uri: string; readonly title: string } | undefined;
  /** What is wrong with this request, for humans. */
  readonly detail: string;
  /** A URI that identifies this occurrence. */
  readonly instance?: string | undefined;
}

/** Extension members of a problem, as URL references. */
export interface ProblemLinks {
  /** What replaces the requested resource. */
  readonly successor?: string | undefined;
  /** An explanation of the route's retirement. */
  readonly documentation?: string | undefined;
}

/** Creates the answer for a problem. */
export function problemAnswer(problem: Problem, links: ProblemLinks): Answer {
  const { type, detail, instance, ...answer } = problem;
  const { status, fields } = answer;
  const { successor, documentation } = links;
  const [uri, title] = type === undefined
    ? [undefined, STATUS_TEXT[status]]
    : [type.uri, type.title];
  const body = { type: uri, title, status, detail, instance, successor, documentation };
  const text = JSON.stringify(body);
  return { ...answer, ...textAnswer(status, { type: "application/problem+json", text, fields }) };
}
