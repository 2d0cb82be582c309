/** Generates the OpenAPI description (OpenAPI 3.1) from the route table and the policies. */

import { z } from "zod";
import { formatInstant } from "../http/timestamp.ts";
import type { Policy } from "../lifecycle/policy.ts";
import type { HandlerConfig } from "../server/handler.ts";
import { METHODS, pathOf, type Route, withToken } from "../server/route.ts";
import { VERSION } from "../server/version.ts";
import {
  COMMON_FIELDS,
  type FieldName,
  FIELDS,
  OPTIONS_RESPONSES,
  type ResponseDescription,
  responsesOf,
  SCHEMAS,
} from "./openapi_responses.ts";

const INFO = {
  title: "media-head",
  version: VERSION,
  summary: "Serves published audio and video",
  description:
    "Serves published media. A HEAD says exactly what a GET without Range would have said. " +
    COMMON_FIELDS,
  license: { name: "MIT", identifier: "MIT" },
};

/**
 * Generates the OpenAPI description of routes.
 *
 * @returns OpenAPI 3.1 as JSON text.
 */
export function describeApi(
  routes: readonly Route[],
  { publicUrl = "/", contact, policies }: Pick<HandlerConfig, "publicUrl" | "contact" | "policies">,
): string {
  const paths = Object.fromEntries(
    routes.map((route) => {
      const path = pathOf(route);
      return [withToken(path, "{token}"), describeRoute(route, policies[path])];
    }),
  );
  const document = {
    openapi: "3.1.0",
    info: { ...INFO, contact: contact === undefined ? undefined : contactOf(contact) },
    servers: [{ url: publicUrl }],
    security: [],
    tags: [
      { name: "media", description: "Published audio and video" },
      { name: "server", description: "Health and documentation" },
    ],
    paths,
    components: {
      parameters: {
        token: {
          in: "path",
          name: "token",
          required: true,
          description: "The media token, in either case",
          schema: schemaOf(z.uuid({ version: "v4" })),
        },
      },
      headers: Object.fromEntries(
        Object.entries(FIELDS).filter(([name]) => JSON.stringify(paths).includes(`/${name}"`))
          .map(([name, description]) => [name, { description, schema: { type: "string" } }]),
      ),
      schemas: Object.fromEntries(
        Object.entries(SCHEMAS).map(([name, schema]) => [name, schemaOf(schema)]),
      ),
    },
  };
  return JSON.stringify(document) + "\n"; // indented, it would be 75 % longer
}

function contactOf(url: string) {
  const { protocol, pathname } = new URL(url);
  const name = "The operator of this server";
  return protocol === "mailto:" ? { name, email: pathname } : { name, url };
}

function schemaOf(schema: z.ZodType) {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    // The format implies the pattern, and the pattern is ten times as long.
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
    },
  });
  return rest;
}

/**
 * Describes a route. JSON leaves out members that are `undefined`.
 *
 * @param policy The route's policy, if it is deprecated.
 */
function describeRoute(route: Route, policy: Policy | undefined) {
  const [, name = ""] = /^.([\w-]+)/.exec(pathOf(route)) ?? [];
  const { serves, successor } = route;
  const operations = METHODS.map((method) => [method.toLowerCase(), {
    operationId: `${method.toLowerCase()}${name[0]?.toUpperCase()}${name.slice(1)}`,
    ...descriptionOf(method, route),
    tags: [Array.isArray(serves) ? "media" : "server"],
    ...successor === undefined || policy === undefined ? undefined : deprecation(successor, policy),
    responses: describeResponses(method, route, policy),
  }]);
  return {
    parameters: pathOf(route).includes(":token")
      ? [{ $ref: "#/components/parameters/token" }]
      : undefined,
    ...Object.fromEntries(operations),
  };
}

function describeResponses(method: string, route: Route, policy: Policy | undefined) {
  const isHead = method === "HEAD";
  const isOptions = method === "OPTIONS";
  const announcement: FieldName[] = ["Deprecation", "Link"];
  if (policy?.sunsetAt !== undefined) announcement.push("Sunset");
  const isAnnounced = policy !== undefined && !isOptions;
  const responses: [string, ResponseDescription][] = Object.entries(
    isOptions ? OPTIONS_RESPONSES : responsesOf(route, policy),
  );
  return Object.fromEntries(
    responses.filter(([status]) => !isHead || status !== "206" && status !== "416")
      .map(([status, { description, fields, content }]) => {
        const names = isAnnounced && Number(status) < 400 ? [...fields, ...announcement] : fields;
        const headers = Object.fromEntries(
          names.map((name) => [name, { $ref: `#/components/headers/${name}` }]),
        );
        return [status, { description, headers, content: isHead ? undefined : content }];
      }),
  );
}

/** The routes that serve no media: what each serves, and how. */
const TEXTS = {
  health: ["the health of storage", "200 if storage is available, 503 if not."],
  notice: ["the retirement notice", "HTML or JSON, by Accept."],
  description: ["this OpenAPI description", "OpenAPI 3.1, as JSON."],
} as const;

function descriptionOf(
  method: string,
  { serves }: Route,
): { summary: string; description: string } {
  if (method === "OPTIONS") {
    return {
      summary: "Get the methods that the route accepts",
      description: "Browsers send this as a CORS preflight.",
    };
  }
  const [what, description] = typeof serves === "string"
    ? TEXTS[serves]
    : [`published ${serves.join(" or ")}`, "Supports preconditions and Range."];
  return method === "HEAD"
    ? {
      summary: `Get the headers of ${what}`,
      description: "The same as GET, without the content.",
    }
    : { summary: `Get ${what}`, description };
}

function deprecation(successor: string, { sunsetAt }: Policy) {
  const removal = sunsetAt === undefined ? "" : ` Removal: ${formatInstant(sunsetAt)}.`;
  return {
    deprecated: true,
    description: `Use \`${withToken(successor, "{token}")}\` instead.${removal}`,
    "x-sunset": sunsetAt === undefined ? undefined : formatInstant(sunsetAt).slice(0, 10),
  };
}
