/**
 * Every problem type of this server. The notice explains each at the fragment of its URI, and the
 * OpenAPI description lists them.
 */

import { REFUSAL_TYPES } from "../lifecycle/refusal.ts";
import { type Field, NO_STORE } from "../http/answer.ts";
import type { Problem, ProblemType } from "../http/problem.ts";

/** The page that explains the types; their names are the fragments. */
export const PROBLEM_TYPES_PAGE = "/deprecation";

/** The types by name. */
export const PROBLEM_TYPES = {
  "no-such-route": {
    status: 404,
    title: "No such route",
    meaning: "This path does not exist. Case and trailing slashes matter.",
  },
  "bad-host": {
    status: 400,
    title: "Bad Host",
    meaning:
      "The Host field of the request is not a valid host. Send the host and port of the URL.",
  },
  "method-not-allowed": {
    status: 405,
    title: "Method not allowed",
    meaning: "The path does not accept this method. The Allow field lists those it does.",
  },
  "malformed-token": {
    status: 400,
    title: "Malformed token",
    meaning: "The token in the path is not a version 4 UUID. Check the link.",
  },
  "never-published": {
    status: 404,
    title: "Never published",
    meaning: "Nothing was ever published under this token; or an item of the other kind was, " +
      "which the successor serves.",
  },
  unpublished: {
    status: 410,
    title: "Unpublished",
    meaning: "The item was permanently unpublished. It has no replacement.",
  },
  ...REFUSAL_TYPES,
  "precondition-failed": {
    status: 412,
    title: "Precondition failed",
    meaning: "The current representation does not meet If-Match or If-Unmodified-Since.",
  },
  "range-not-satisfiable": {
    status: 416,
    title: "Range not satisfiable",
    meaning: "The range lies beyond the content, whose length is in the Content-Range field.",
  },
  "content-replaced": {
    status: 502,
    title: "Content replaced",
    meaning: "The stored content is no longer what was published. Contact the operator.",
  },
  "storage-unavailable": {
    status: 503,
    title: "Storage unavailable",
    meaning: "The server cannot read its storage. Retry after the time in the Retry-After field.",
  },
  "server-fault": {
    status: 500,
    title: "Server fault",
    meaning: "The server failed. Its log identifies this occurrence by the problem instance.",
  },
} as const satisfies Record<string, ProblemType>;

/** The name of a problem type. */
export type ProblemName = keyof typeof PROBLEM_TYPES;

/** The status of a problem. */
export type ProblemStatus = typeof PROBLEM_TYPES[ProblemName]["status"];

/** The names of the types with a status. */
type NamesOf<Status extends ProblemStatus> = {
  [Name in ProblemName]: typeof PROBLEM_TYPES[Name]["status"] extends Status ? Name : never;
}[ProblemName];

/** The members of a problem besides its type; fields are optional. */
export type ProblemOptions = Omit<Problem, "status" | "type" | "fields"> & Partial<Problem>;

/**
 * Creates a problem. It gets `no-store` unless its fields have a Cache-Control, because some of
 * these statuses are cacheable by default (RFC 9110 §15.1), and a cached error outlives its cause.
 *
 * @param status The status of that type, for readers of the call.
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
 * Creates the problem for a server failure. It does not reveal the cause.
 *
 * @param status 503 if a retry may succeed, 502 if the content was replaced, 500 if unknown.
 * @param id A UUID that identifies the occurrence in the log.
 */
export function failure(status: 500 | 502 | 503, id: string): Problem {
  const instance = `urn:uuid:${id}`;
  if (status === 500) {
    return problem(500, "server-fault", { detail: "The server failed", instance });
  }
  if (status === 502) {
    return problem(502, "content-replaced", { detail: "The content was replaced", instance });
  }
  const detail = "Storage is unavailable; retry later";
  return problem(503, "storage-unavailable", { detail, instance, fields: [RETRY_AFTER] });
}
