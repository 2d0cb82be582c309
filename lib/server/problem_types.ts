/**
 * Every problem that this server tells of. One table: the code takes its types from here, the
 * notice explains each of them at the place that the type's URI names, and OpenAPI lists them.
 */

import { REFUSAL_TYPES } from "../lifecycle/refusal.ts";
import { type Field, NO_STORE } from "../http/answer.ts";
import type { Problem, ProblemType } from "../http/problem.ts";

/** The page that explains them; the name of each is the fragment. */
export const PROBLEM_TYPES_PAGE = "/deprecation";

/** The types by their names. */
export const PROBLEM_TYPES = {
  "no-such-route": {
    status: 404,
    title: "No such route",
    meaning: "The server has no such path. Upper case and trailing slashes matter.",
  },
  "bad-host": {
    status: 400,
    title: "Bad Host",
    meaning: "The Host field of the request names no host. Send the host and port of the URL.",
  },
  "method-not-allowed": {
    status: 405,
    title: "Method not allowed",
    meaning: "The path does not take this method. The Allow field lists those that it takes.",
  },
  "malformed-token": {
    status: 400,
    title: "Malformed token",
    meaning: "What stands in the place of the token is no version 4 UUID. Check the link.",
  },
  "never-published": {
    status: 404,
    title: "Never published",
    meaning: "Nothing was ever published under this token, or an item of the other kind, which " +
      "the successor gives.",
  },
  unpublished: {
    status: 410,
    title: "Unpublished",
    meaning: "The item was published once, and was withdrawn for good. Nothing replaces it.",
  },
  ...REFUSAL_TYPES,
  "precondition-failed": {
    status: 412,
    title: "Precondition failed",
    meaning: "What is here now is not what If-Match or If-Unmodified-Since asks for.",
  },
  "range-not-satisfiable": {
    status: 416,
    title: "Range not satisfiable",
    meaning: "The range lies beyond the content, whose length is in the Content-Range field.",
  },
  "content-replaced": {
    status: 502,
    title: "Content replaced",
    meaning: "Where the content was published, there is other content now. Tell the operator.",
  },
  "storage-unavailable": {
    status: 503,
    title: "Storage unavailable",
    meaning: "The server cannot read its storage. Retry after the time in the Retry-After field.",
  },
  "server-fault": {
    status: 500,
    title: "Server fault",
    meaning: "The server failed. Its log names this occurrence by the instance of the problem.",
  },
} as const satisfies Record<string, ProblemType>;

/** The name of a type. */
export type ProblemName = keyof typeof PROBLEM_TYPES;

/** A status that a problem can have. */
export type ProblemStatus = typeof PROBLEM_TYPES[ProblemName]["status"];

/** The names of the types with a status. */
type NamesOf<Status extends ProblemStatus> = {
  [Name in ProblemName]: typeof PROBLEM_TYPES[Name]["status"] extends Status ? Name : never;
}[ProblemName];

/** What a problem says beyond its type; it needs no fields. */
export type ProblemOptions = Omit<Problem, "status" | "type" | "fields"> & Partial<Problem>;

/**
 * A problem of this server. Not to be stored, unless its fields say otherwise: some of these
 * statuses are cacheable by default (RFC 9110 §15.1), and a stored error would outlive its cause.
 *
 * @param status The status of that type, for the reader of the call.
 */
export function problem<Status extends ProblemStatus>(
  status: Status,
  name: NamesOf<Status>,
  { fields = [], ...options }: ProblemOptions,
): Problem {
  const type = { uri: `${PROBLEM_TYPES_PAGE}#${name}`, title: PROBLEM_TYPES[name].title };
  const isCacheable = fields.some(([name]) => name === "Cache-Control");
  return { ...options, status, type, fields: isCacheable ? fields : [NO_STORE, ...fields] };
}

/** When to retry while storage is unavailable, in seconds. */
const RETRY_AFTER: Field = ["Retry-After", "5"];

/**
 * The problem when the server cannot do what it should. It tells nothing of the cause.
 *
 * @param status 503 when the same may succeed later, 502 when the content is not there any more, 500
 *   when nothing is known.
 * @param id A UUID that names the occurrence in the log.
 */
export function failure(status: 500 | 502 | 503, id: string): Problem {
  const instance = `urn:uuid:${id}`;
  if (status === 500) {
    return problem(500, "server-fault", { detail: "The server failed", instance });
  }
  if (status === 502) {
    return problem(502, "content-replaced", { detail: "The content was replaced", instance });
  }
  const detail = "Storage is unavailable; try again";
  return problem(503, "storage-unavailable", { detail, instance, fields: [RETRY_AFTER] });
}
