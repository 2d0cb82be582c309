/**
 * The OpenAPI description (OpenAPI 3.1), generated from the route table and the policy. No other
 * request needs it, so it is loaded on first use.
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
import type { DocumentOptions } from "../server/assembly.ts";
import { METHODS, type Route } from "../server/route.ts";
import { templateOf } from "./template.ts";

const Token = z.uuid({ version: "v4" }).meta({
  param: { id: "token", in: "path", name: "token", description: "The media token, in either case" },
});

/**
 * Generates the OpenAPI description of routes.
 *
 * @returns OpenAPI 3.1 as JSON text.
 */
export function describeApi(
  routes: readonly Route[],
  { policy, publicUrl = "/" }: DocumentOptions["config"],
): string {
  const document = createDocument({
    openapi: "3.1.0",
    info: {
      title: "media-head",
      version: project.version,
      summary: "Serves published audio and video",
      description: "Serves published media, with two deprecated paths. A HEAD says " +
        `exactly what the GET would have said. ${COMMON_FIELDS}`,
      contact: { name: "The operator of this server" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: publicUrl }],
    security: [],
    tags: [
      { name: "media", description: "Published audio and video" },
      { name: "server", description: "Health and documentation" },
    ],
    paths: Object.fromEntries(
      routes.map((route) => [templateOf(route.path), describeRoute(route, policy)]),
    ),
  }, {
    // The format implies the pattern, which is ten times as long.
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
    },
  });
  shareResponses(document as unknown as DescribedPaths);
  return JSON.stringify(document) + "\n"; // not indented, which would add 75 %
}

function describeRoute(route: Route, policy: Policy): ZodOpenApiPathItemObject {
  const responses = responsesOf(route, policy);
  const operations = METHODS.map((method) => {
    const applying = method === "OPTIONS"
      ? { 204: { description: "The methods that the route accepts", always: ["Allow"] as const } }
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

/** The fields that announce a route's retirement. */
function announcedFields({ successor }: Route, { sunsetAt }: Policy): FieldName[] {
  if (successor === undefined) return [];
  return sunsetAt === undefined ? ["Deprecation", "Link"] : ["Deprecation", "Link", "Sunset"];
}

/** Returns the texts of an operation. */
function textOf(method: string, { serves }: Route): { summary: string; description: string } {
  if (method === "OPTIONS") {
    return {
      summary: "Get the methods that the route accepts",
      description: "Browsers send this as a CORS preflight.",
    };
  }
  const [what, description] = serves === "health"
    ? ["the health of storage", "200 if storage is available, 503 if not."]
    : serves === "notice"
    ? ["the retirement notice", "HTML or JSON, by Accept."]
    : serves === "description"
    ? ["this OpenAPI description", "OpenAPI 3.1, as JSON."]
    : [`published ${serves.join(" or ")}`, "Supports preconditions and Range."];
  return method === "HEAD"
    ? {
      summary: `Get the headers of ${what}`,
      description: "The same as GET, without the content.",
    }
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
