/**
 * The responses of each route for the OpenAPI description: their statuses, fields and content.
 */

import { z } from "zod";
import { Notice } from "./notice.ts";
import type { Policy } from "../lifecycle/policy.ts";
import { PROBLEM_TYPES, PROBLEM_TYPES_PAGE } from "../server/problem_types.ts";
import type { Route } from "../server/route.ts";

const types = Object.keys(PROBLEM_TYPES).map((name) => `${PROBLEM_TYPES_PAGE}#${name}`);
const uriReference = z.string().meta({ format: "uri-reference" });

const Problem = z.object({
  type: z.enum(types).describe("The kind of problem; links to its explanation"),
  title: z.string().describe("A short name for the kind of problem"),
  status: z.int().min(400).max(599).describe("The HTTP status"),
  detail: z.string().describe("What is wrong with this request, for humans"),
  instance: uriReference.exactOptional().describe("Identifies this occurrence; of faults only"),
  successor: uriReference.exactOptional()
    .describe("The item's replacement; on deprecated paths only"),
  documentation: uriReference.exactOptional()
    .describe("Explains the retirement; on deprecated paths only"),
}).describe("Problem details (RFC 9457)");

/** The schemas of content that is JSON. */
export const SCHEMAS = {
  Problem,
  Notice: Notice.describe("The retirement notice; instants are UTC"),
};

function reference(schema: keyof typeof SCHEMAS) {
  return { schema: { $ref: `#/components/schemas/${schema}` } };
}

/** The fields that are described once, rather than for each response. */
export const COMMON_FIELDS = "Every response has Access-Control-Allow-Origin, " +
  "Access-Control-Expose-Headers and Cache-Control. All but 204 and 304 have Content-Length. " +
  "Responses with content, and HEAD responses to the same requests, have X-Content-Type-Options. OPTIONS " +
  "responses have Access-Control-Allow-Methods, Access-Control-Allow-Headers and " +
  "Access-Control-Max-Age. On deprecated paths, errors and OPTIONS responses also have " +
  "Deprecation, Link and, once a date is set, Sunset, unless Host is invalid.";

/** The fields described for each response, by name. OpenAPI describes Content-Type with the content. */
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

/** The name of a described response field. */
export type FieldName = keyof typeof FIELDS;

/** The fields of every 200 and 206 with a representation: items and generated documents alike. */
const WHOLE: FieldName[] = ["Accept-Ranges", "Repr-Digest"];

/** A response: its description, the fields that it always or sometimes has, and its content. */
export interface Described {
  readonly description: string;
  readonly always: readonly FieldName[];
  readonly sometimes?: readonly FieldName[];
  /** A schema by media type. */
  readonly content?: Readonly<Record<string, object>>;
}

/** The responses to a GET, by status. HEAD has the same, except those to Range. */
export type Responses = Readonly<Record<number, Described>>;

/** Returns the responses of a route. */
export function responsesOf(route: Route, policy: Policy): Responses {
  return { 400: error(BAD_HOST), ...ownResponses(route, policy), 405: NOT_ALLOWED };
}

function ownResponses(route: Route, policy: Policy): Responses {
  switch (route.serves) {
    case "health":
      return {
        200: {
          description: "Storage is available",
          always: [],
          content: { "text/plain": { schema: { const: "ok\n" } } },
        },
        ...BUG,
        503: unavailable(),
      };
    case "notice":
      return textResponses({
        "text/html": { schema: { type: "string" } },
        "application/json": reference("Notice"),
      }, { always: ["Vary"], sometimes: ["Content-Language", "Content-Security-Policy"] });
    case "description":
      return textResponses({ "application/json": { schema: { type: "object" } } }, { always: [] });
    default:
      return itemResponses(route, policy);
  }
}

/** Returns the responses for an item. */
function itemResponses(route: Route, policy: Policy): Responses {
  const validators: FieldName[] = ["ETag", "Last-Modified"];
  const sometimes: FieldName[] = ["Content-Disposition", "Content-Language"];
  const content = Object.fromEntries(
    (route.serves as readonly string[]).map((kind) => [`${kind}/*`, {}]),
  );
  const isDeprecated = route.successor !== undefined;
  const isRemoved = isDeprecated && policy.sunsetAt !== undefined;
  const isRedirected = isRemoved && policy.afterSunset === "redirect";
  const brownout = isDeprecated && policy.brownouts.length > 0 ? policy.brownoutStatus : undefined;
  const disabled = "; or disabled by a brownout until Retry-After";
  const removed = isRedirected ? "; or removed, and the token is malformed" : "; or removed";
  const gone = "Unpublished" + (brownout === 410 ? disabled : "") + (isRemoved ? removed : "");
  return {
    200: { description: "Published", always: [...WHOLE, ...validators], sometimes, content },
    206: {
      description: "The requested range",
      always: [...WHOLE, ...validators, "Content-Range"],
      sometimes,
      content,
    },
    304: { description: "Not modified", always: validators },
    307: {
      description: "At a public URL, which handles preconditions and Range",
      always: ["Location"],
    },
    ...isRedirected ? { 308: REPLACED } : undefined,
    400: error(`The token is not a version 4 UUID; or: ${BAD_HOST}`),
    404: error(`Never published${isDeprecated ? ", or published as another kind" : ""}`),
    410: {
      ...error(gone),
      sometimes: [
        ...brownout === 410 ? ["Retry-After" as const] : [],
        ...brownout === 410 || isRemoved ? ["Vary" as const] : [],
      ],
    },
    ...CONDITIONAL,
    502: error("Content replaced"),
    ...BUG,
    503: brownout === 503 ? { ...unavailable(disabled), sometimes: ["Vary"] } : unavailable(),
  };
}

/** Returns the responses for a generated document. */
function textResponses(
  content: NonNullable<Described["content"]>,
  { always, sometimes = [] }: { always: readonly FieldName[]; sometimes?: readonly FieldName[] },
): Responses {
  const whole: FieldName[] = [...WHOLE, "ETag", ...always];
  return {
    200: { description: "The document", always: whole, sometimes, content },
    206: {
      description: "The requested range",
      always: [...whole, "Content-Range"],
      sometimes,
      content,
    },
    304: { description: "Not modified", always: ["ETag", ...always] },
    ...CONDITIONAL,
    ...BUG,
  };
}

function error(description: string, always: readonly FieldName[] = []): Described {
  return {
    description,
    always,
    content: { "application/problem+json": reference("Problem") },
  };
}

const BAD_HOST = "Host is invalid";
const NOT_ALLOWED = error("The method is not one that the route accepts", ["Allow"]);

/** The responses to OPTIONS. */
export const OPTIONS_RESPONSES: Responses = {
  204: { description: "The methods that the route accepts", always: ["Allow"] },
  400: error(BAD_HOST),
};

const CONDITIONAL = {
  412: error("A precondition of the request failed"),
  416: error("The requested range lies beyond the content", ["Content-Range"]),
};

const BUG = { 500: error("The server failed") };

const REPLACED: Described = {
  description: "Removed; Location is the item's replacement",
  always: ["Location"],
};

function unavailable(more = ""): Described {
  return error(`Storage is unavailable${more}`, ["Retry-After"]);
}
