/**
 * Every problem type of this server. The notice explains each at the fragment of its URI, and the
 * OpenAPI description lists them.
 */

import { type Field, NO_STORE } from "../http/outcome.ts";
import { problemDetails, type ProblemType } from "../http/problem.ts";
import type { Policy } from "../lifecycle/policy.ts";
import { REFUSAL_TYPES } from "../lifecycle/refusal.ts";
import type { MarkedOutcome } from "./handler.ts";

/** The page that explains the types. Their names are its fragments. */
export const PROBLEM_TYPES_PAGE = "/deprecation";

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
    meaning: "The path does not accept this method. The Allow field lists those that it accepts.",
  },
  "malformed-token": {
    status: 400,
    title: "Malformed token",
    meaning: "The token in the path is not a version 4 UUID. Check the link.",
  },
  "never-published": {
    status: 404,
    title: "Never published",
    meaning: "Nothing of the kind that the path serves was ever published under this token.",
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
    meaning: "The stored content is no longer that which was published. Retrying does not help.",
  },
  "storage-unavailable": {
    status: 503,
    title: "Storage unavailable",
    meaning:
      "The server cannot read storage, or the content is missing or incomplete. Retry after the " +
      "seconds in the Retry-After field.",
  },
  "server-fault": {
    status: 500,
    title: "Server fault",
    meaning: "The server failed. Give the operator the instance that a GET shows; the log has it.",
  },
} as const satisfies Record<string, ProblemType>;

export type ProblemName = keyof typeof PROBLEM_TYPES;

/** The names of the types that have a given status. */
type NamesOf<Status extends number> = {
  [Name in ProblemName]: typeof PROBLEM_TYPES[Name]["status"] extends Status ? Name : never;
}[ProblemName];

/** A call. Only one to a deprecated route has a policy, and may have a successor. */
interface ProblemCall {
  /** Nothing reads this; without it, TypeScript would refuse a call that has neither of the others. */
  readonly kind: string;
  readonly policy?: Policy;
  readonly successor?: string | undefined;
}

/** The optional parts of a problem, besides its status, type and detail. */
interface ProblemOptions extends Pick<MarkedOutcome, "isReusable" | "hasNoSuccessor"> {
  /** More fields of the response. */
  readonly fields?: readonly Field[];
  /** Logs the cause with the status, and returns the id under which the log has it. */
  readonly logAs?: (status: number) => string;
}

/**
 * Returns the outcome of a problem. It is `no-store`, because some of these statuses are cacheable
 * by default (RFC 9110 §15.1), and a cached error outlives its cause.
 *
 * @param status The status of the type, stated so that whoever reads the call sees it.
 */
export function problem<Status extends number>(
  { policy, successor }: ProblemCall,
  status: Status,
  name: NamesOf<Status>,
  detail: string,
  { fields = [], logAs, isReusable, hasNoSuccessor }: ProblemOptions = {},
): MarkedOutcome {
  const details = problemDetails({
    status,
    fields: [NO_STORE, ...fields],
    type: `${PROBLEM_TYPES_PAGE}#${name}`,
    title: PROBLEM_TYPES[name].title,
    detail,
    instance: logAs && `urn:uuid:${logAs(status)}`,
    successor: hasNoSuccessor ? undefined : successor,
    documentation: policy?.documentation,
  });
  return { ...details, isReusable, hasNoSuccessor };
}
