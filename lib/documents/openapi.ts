/**
 * The description of the API (OpenAPI 3.1), made of the route table and the policy. Nothing on the
 * path of another request needs this, so it is loaded when it is first asked for.
 */

import { z } from "zod";
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathItemObject,
} from "zod-openapi";
import project from "../../deno.json" with { type: "json" };
import { formatInstant, type Policy } from "../lifecycle/policy.ts";
import {
  COMMON_FIELDS,
  type FieldName,
  headersOf,
  type Responses,
  responsesOf,
} from "./openapi_responses.ts";
import { type DescribedPaths, shareResponses } from "./openapi_components.ts";
import { METHODS, type Route } from "../server/route.ts";
import { templateOf } from "./template.ts";

const Token = z.uuid({ version: "v4" }).meta({
  param: { id: "token", in: "path", name: "token", description: "The media token; in either case" },
});

/**
 * Describes routes.
 *
 * @returns OpenAPI 3.1 as JSON text.
 */
export function describeApi(routes: readonly Route[], policy: Policy): string {
  const document = createDocument({
    openapi: "3.1.0",
    info: {
      title: "media-head",
      version: project.version,
      summary: "Published audio and video, as GET and HEAD tell of it",
      description: "Published media, with two deprecated paths on their way out. A HEAD says " +
        `exactly what the GET would have said. ${COMMON_FIELDS}`,
      contact: { name: "The operator of this server" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [],
    tags: [
      { name: "media", description: "Published audio and video" },
      { name: "server", description: "The server, and what it says of itself" },
    ],
    paths: Object.fromEntries(
      routes.map((route) => [templateOf(route.path), describeRoute(route, policy)]),
    ),
  }, {
    // The format says it, in a tenth of the length.
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
    },
  });
  shareResponses(document as unknown as DescribedPaths);
  return JSON.stringify(document) + "\n"; // indented, it would be three quarters longer
}

function describeRoute(route: Route, policy: Policy): ZodOpenApiPathItemObject {
  const responses = responsesOf(route, policy);
  const operations = METHODS.map((method) => {
    const applying = method === "OPTIONS"
      ? { 204: { description: "What the route takes", always: ["Allow"] as const } }
      : method === "HEAD"
      ? Object.fromEntries(Object.entries(responses).filter(([status]) => !RANGE.includes(status)))
      : responses;
    return [method.toLowerCase(), describeOperation(method, applying, { route, policy })];
  });
  return {
    ...(route.path.includes(":token") ? { parameters: [Token] } : {}),
    ...Object.fromEntries(operations),
  };
}

/** The statuses of a range request. */
const RANGE = ["206", "416"];

interface Context {
  readonly route: Route;
  readonly policy: Policy;
}

function describeOperation(
  method: string,
  responses: Responses,
  { route, policy }: Context,
): ZodOpenApiOperationObject {
  const name = route.path.split("/")[1]?.replace(".json", "") ?? "";
  return {
    operationId: `${method.toLowerCase()}${name[0]?.toUpperCase()}${name.slice(1)}`,
    ...textOf(method, route),
    tags: [Array.isArray(route.serves) ? "media" : "server"],
    ...(route.successor === undefined ? {} : deprecation(route.successor, policy)),
    responses: Object.fromEntries(
      Object.entries(responses).map(
        ([status, { description, always, sometimes = [], content }]) => {
          const announced = method !== "OPTIONS" && Number(status) < 400
            ? announcedFields(route, policy)
            : [];
          const fields = [...always, ...announced];
          return [status, {
            description,
            ...(fields.length + sometimes.length === 0
              ? {}
              : { headers: headersOf(fields, sometimes) }),
            ...(content === undefined || method === "HEAD" ? {} : { content }),
          }];
        },
      ),
    ),
  };
}

/** The fields by which a route tells of its retirement. */
function announcedFields({ successor }: Route, { sunsetAt }: Policy): FieldName[] {
  if (successor === undefined) return [];
  return sunsetAt === undefined ? ["Deprecation", "Link"] : ["Deprecation", "Link", "Sunset"];
}

/** What an operation does, and what else there is to know of it. */
function textOf(method: string, { serves }: Route): { summary: string; description: string } {
  if (method === "OPTIONS") {
    return {
      summary: "Get the methods that the route takes",
      description: "Browsers send this ahead of some requests.",
    };
  }
  const [what, description] = serves === "health"
    ? ["whether storage answers", "The status tells."]
    : serves === "notice"
    ? ["the retirement notice", "HTML or JSON, by Accept."]
    : serves === "description"
    ? ["this description", "OpenAPI 3.1."]
    : [`published ${serves.join(" or ")}`, "Honours preconditions and Range."];
  return method === "HEAD"
    ? { summary: `Get the head of ${what}`, description: "What GET answers, without its content." }
    : { summary: `Get ${what}`, description };
}

function deprecation(successor: string, { sunsetAt }: Policy): ZodOpenApiOperationObject {
  const removal = sunsetAt === undefined ? "" : ` Removed at ${formatInstant(sunsetAt)}.`;
  return {
    deprecated: true,
    description: `Use \`${templateOf(successor)}\` instead.${removal}`,
    ...(sunsetAt === undefined ? {} : { "x-sunset": formatInstant(sunsetAt).slice(0, 10) }),
  } as ZodOpenApiOperationObject;
}
