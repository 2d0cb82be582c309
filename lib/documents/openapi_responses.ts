/** The responses of each route, for the OpenAPI description. */

import { z } from "zod";
import type { Policy } from "../lifecycle/policy.ts";
import { PROBLEM_TYPES, PROBLEM_TYPES_PAGE, type ProblemName } from "../server/problems.ts";
import type { Route } from "../server/route.ts";
import { NOTICE } from "./notice_schema.ts";

const PROBLEM_TYPE_URIS = Object.keys(PROBLEM_TYPES).map((name) => `${PROBLEM_TYPES_PAGE}#${name}`);
const URI_REFERENCE = z.string().meta({ format: "uri-reference" });

const PROBLEM = z.object({
  type: z.enum(PROBLEM_TYPE_URIS).describe("The kind of problem; links to its explanation"),
  title: z.string().describe("A short name for the kind of problem"),
  status: z.int().min(400).max(599).describe("The HTTP status"),
  detail: z.string().describe("What is wrong with this request, for humans"),
  instance: URI_REFERENCE.exactOptional().describe("Identifies this occurrence; of faults only"),
  successor: URI_REFERENCE.exactOptional()
    .describe("The item's replacement; on deprecated paths only"),
  documentation: URI_REFERENCE.exactOptional()
    .describe("Explains the retirement; on deprecated paths only"),
}).describe("Problem details (RFC 9457)");

/** The schemas of JSON content. */
export const SCHEMAS = {
  Problem: PROBLEM,
  Notice: NOTICE.describe(
    "The retirement notice; instants are UTC. `endpoints` says what applies to each path. The other " +
      "dates are the common policy's, and left out without endpoints",
  ),
};

function reference(schema: keyof typeof SCHEMAS) {
  return { schema: { $ref: `#/components/schemas/${schema}` } };
}

/** The description of the fields that many responses have. */
export const COMMON_FIELDS = "Every response has Access-Control-Allow-Origin, " +
  "Access-Control-Expose-Headers, Cross-Origin-Resource-Policy and Cache-Control. All but 204 and " +
  "304 have Content-Length. Responses with content, and HEAD responses to the same requests, have " +
  "X-Content-Type-Options. OPTIONS responses have Access-Control-Allow-Methods, " +
  "Access-Control-Allow-Headers and Access-Control-Max-Age. On deprecated paths, errors and OPTIONS " +
  "responses also have Deprecation, Link and, once a date is set, Sunset, unless Host is invalid.";

/** The fields to describe for each response. OpenAPI puts Content-Type with the content. */
export const FIELDS = {
  "Accept-Ranges": "Range requests are supported (RFC 9110 §14.3)",
  "Allow": "The methods that the route accepts (RFC 9110 §10.2.1)",
  "Content-Disposition": "The file name to save under, if known (RFC 6266)",
  "Content-Language": "The language, if known (RFC 9110 §8.5)",
  "Content-Range": "The range of the content sent (RFC 9110 §14.4)",
  "Content-Security-Policy": "What the page may load (CSP 3)",
  "Deprecation": "When the deprecation starts, as @ and Unix seconds (RFC 9745)",
  "ETag": "The SHA-256 of the content, as a strong validator (RFC 9110 §8.8.3)",
  "Last-Modified": "When the item was published (RFC 9110 §8.8.2)",
  "Link": "The item's replacement, and an explanation of the retirement (RFC 8288)",
  "Location": "Where to send the request instead (RFC 9110 §10.2.2)",
  "Repr-Digest": "The SHA-256 of the whole content (RFC 9530)",
  "Retry-After": "When to retry (RFC 9110 §10.2.3)",
  "Sunset": "When the path is removed (RFC 8594)",
  "Vary": "The request field that the response depends on (RFC 9110 §12.5.5)",
} as const;

export type FieldName = keyof typeof FIELDS;

/** A response: its description, the fields that it can have, and its content. */
export interface ResponseDescription {
  readonly description: string;
  readonly fields: readonly FieldName[];
  readonly content?: Readonly<Record<string, object>> | undefined;
}

/** The responses to a GET, by status. HEAD has the same ones, except those to Range. */
type Responses = Readonly<Record<number, ResponseDescription>>;

/** The fields that only some error responses have. */
const PROBLEM_FIELDS: Partial<Record<ProblemName, FieldName>> = {
  "method-not-allowed": "Allow",
  "range-not-satisfiable": "Content-Range",
  "storage-unavailable": "Retry-After",
  brownout: "Retry-After",
};

/** The problems that every route can have. */
const COMMON: readonly ProblemName[] = ["bad-host", "method-not-allowed", "server-fault"];

/** Returns the responses for problems, by status. */
function errors(names: readonly ProblemName[], policy?: Policy): Responses {
  const statusesOf = (name: ProblemName): readonly number[] =>
    name === "brownout" && policy !== undefined
      ? [...new Set(policy.brownouts.map(({ status }) => status))]
      : [PROBLEM_TYPES[name].status];
  const content = { "application/problem+json": reference("Problem") };
  const each = names.flatMap((name) => statusesOf(name).map((status) => ({ name, status })));
  const responses = [...Map.groupBy(each, ({ status }) => status)].map(([status, problems]) => {
    const description = problems.map(({ name }) => PROBLEM_TYPES[name].title).join(", or: ");
    const fields = new Set(problems.flatMap(({ name }) => PROBLEM_FIELDS[name] ?? []));
    return [status, { description, fields: [...fields], content }];
  });
  return Object.fromEntries(responses);
}

export const OPTIONS_RESPONSES: Responses = {
  204: { description: "The methods that the route accepts", fields: ["Allow"] },
  ...errors(["bad-host"]),
};

/**
 * Returns the responses of a route.
 *
 * @param policy The route's policy, if it is deprecated.
 */
export function responsesOf(route: Route, policy: Policy | undefined): Responses {
  switch (route.serves) {
    case "health":
      return {
        200: {
          description: "Storage is available",
          fields: [],
          content: { "text/plain": { schema: { type: "string", pattern: "^ok" } } },
        },
        ...errors([...COMMON, "storage-unavailable"]),
      };
    case "notice": {
      const html = { "text/html": { schema: { type: "string" } } };
      const content = { ...html, "application/json": reference("Notice") };
      const page: FieldName[] = ["Content-Language", "Content-Security-Policy"];
      return representation("The document", content, ["ETag", "Vary"], page);
    }
    case "description": {
      const content = { "application/json": { schema: { type: "object" } } };
      return representation("The document", content, ["ETag"]);
    }
    default:
      return itemResponses(route.serves, policy);
  }
}

/** Returns the responses to requests for a representation, with the problems of such requests. */
function representation(
  description: string,
  content: ResponseDescription["content"],
  validators: readonly FieldName[],
  more: readonly FieldName[] = [],
): Responses {
  const fields: FieldName[] = ["Accept-Ranges", "Repr-Digest", ...validators, ...more];
  const part = [...fields, "Content-Range" as const];
  return {
    200: { description, fields, content },
    206: { description: "The requested range", fields: part, content },
    304: { description: "Not modified", fields: validators },
    ...errors([...COMMON, "precondition-failed", "range-not-satisfiable"]),
  };
}

function itemResponses(kinds: readonly string[], policy: Policy | undefined): Responses {
  const content = Object.fromEntries(kinds.map((kind) => [`${kind}/*`, {}]));
  const itemFields: FieldName[] = ["Content-Disposition", "Content-Language"];
  const isRemoved = policy?.sunsetAt !== undefined;
  const problems: ProblemName[] = ["bad-host", "malformed-token", "never-published"];
  problems.push("unpublished", "content-replaced", "storage-unavailable");
  if (policy !== undefined && policy.brownouts.length > 0) problems.push("brownout");
  if (isRemoved) problems.push("removed");
  return {
    ...representation("Published", content, ["ETag", "Last-Modified"], itemFields),
    ...errors(problems, policy),
    307: {
      description: "The item is at the public URL in Location; preconditions and Range apply there",
      fields: ["Location"],
    },
    ...isRemoved && policy.afterSunset === "redirect" && {
      308: { description: "Removed; Location is the item's replacement", fields: ["Location"] },
    },
  };
}
