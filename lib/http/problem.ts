/**
 * Errors as problem details (RFC 9457).
 */

import { STATUS_TEXT } from "@std/http/status";
import { type Answer, type Field, NO_STORE, textAnswer } from "./answer.ts";

/** What a problem says beyond its status. */
export interface ProblemOptions {
  /** What is wrong with this request, for a person. */
  readonly detail: string;
  /** A URI that names this very occurrence. */
  readonly instance?: string;
  /** Fields besides those that follow from the content. */
  readonly fields?: readonly Field[];
  /** How caches may keep it; not at all when left out. */
  readonly cacheControl?: Field;
  /** See {@linkcode Answer}. */
  readonly freshUntil?: number | undefined;
}

/**
 * An error answer. Not to be stored, unless it says so: some of these statuses are cacheable by
 * default (RFC 9110 §15.1), and a stored error would outlive its cause.
 *
 * @param status From 400 to 599.
 */
export function problem(
  status: number,
  { detail, instance, fields = [], cacheControl = NO_STORE, freshUntil }: ProblemOptions,
): Answer {
  // Without a `type` a problem is "about:blank", whose title is the reason phrase (§4.2.1).
  const body = { title: STATUS_TEXT[status], status, detail, instance };
  const answer = textAnswer(status, {
    type: "application/problem+json",
    text: JSON.stringify(body),
    fields: [cacheControl, ...fields],
  });
  return { ...answer, freshUntil };
}

/**
 * The answer when the server cannot do what it should. It tells nothing of the cause.
 *
 * @param status 503 when the same may succeed later, 500 when it is not known to.
 * @param id A UUID that names the occurrence in the log.
 */
export function failure(status: 500 | 503, id: string): Answer {
  return problem(status, {
    detail: status === 503 ? "Storage is unavailable; try again" : "The server failed",
    instance: `urn:uuid:${id}`,
    fields: status === 503 ? [["Retry-After", "5"]] : [],
  });
}
