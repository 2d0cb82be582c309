/** Errors as problem details (RFC 9457). */

import { type Outcome, textOutcome } from "./outcome.ts";

export interface ProblemType {
  /** From 400 to 599. */
  readonly status: number;
  readonly title: string;
  /** What it means, and what to do about it. */
  readonly meaning: string;
}

/** An error, before the members that depend on its route are added. */
export interface Problem extends Omit<Outcome, "kind" | "body"> {
  readonly kind: "problem";
  /** The problem type's URI reference; "about:blank" if left out. */
  readonly type?: string | undefined;
  /** The type's title; of "about:blank", the reason phrase of the status (§4.2.1). */
  readonly title: string;
  /** What is wrong with this request, for humans. */
  readonly detail: string;
  /** A URI that identifies this occurrence. */
  readonly instance?: string | undefined;
  /** Whether nothing replaces what was requested, whatever its route says. */
  readonly hasNoSuccessor?: boolean | undefined;
}

/** What a request comes to. */
export type Decision = Outcome | Problem;

/** Returns the outcome that presents a problem as JSON, with its links as URL references. */
export function problemDetails(
  problem: Omit<Problem, "kind">,
  { successor, documentation }: Partial<Record<"successor" | "documentation", string | undefined>>,
): Outcome {
  const { status, fields, isKept, type, title, detail, instance } = problem;
  const members = { type, title, status, detail, instance, successor, documentation };
  const text = JSON.stringify(members);
  return { ...textOutcome(status, { type: "application/problem+json", text, fields }), isKept };
}
