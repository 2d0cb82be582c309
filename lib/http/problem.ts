/**
 * Errors as problem details (RFC 9457).
 */

import { STATUS_TEXT } from "@std/http/status";
import { type Answer, textAnswer } from "./answer.ts";

/** What all occurrences of a problem have in common. */
export interface ProblemType {
  /** From 400 to 599. */
  readonly status: number;
  /** The problem in a few words. */
  readonly title: string;
  /** What it means, and what to do about it, in sentences. */
  readonly meaning: string;
}

/** An error before it is an answer: its route has a say in the content too. */
export interface Problem extends Omit<Answer, "content"> {
  /**
   * A URI reference that names the type of the problem, and its title. Without one the problem is
   * "about:blank": an error of which the status says everything (§4.2.1).
   */
  readonly type?: { readonly uri: string; readonly title: string } | undefined;
  /** What is wrong with this request, for a person. */
  readonly detail: string;
  /** A URI that names this very occurrence. */
  readonly instance?: string | undefined;
}

/** Members of a problem that tell where to go from here: URL references. */
export interface ProblemLinks {
  /** What replaces the very thing asked for. */
  readonly successor?: string | undefined;
  /** Where it is explained why the route is retired. */
  readonly documentation?: string | undefined;
}

/** The answer that tells of a problem. */
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
