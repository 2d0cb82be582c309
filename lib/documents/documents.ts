/** The documents that the server generates: the retirement notice and the OpenAPI description. */

import type { Field } from "../http/outcome.ts";
import { noticeAt } from "../lifecycle/notice.ts";
import type { RoutePolicies } from "../lifecycle/policy.ts";
import { prefersJson } from "../pages/accept.ts";
import type { HandlerConfig } from "../server/handler.ts";
import { PROBLEM_TYPES } from "../server/problems.ts";
import { reprDigest, type Representation } from "../server/representation.ts";
import { type DocumentName, METHODS, pathOf, type Route, withToken } from "../server/route.ts";
import { noticePage } from "./notice_page.ts";
import { describeApi } from "./openapi.ts";

/** The OpenAPI description of each configuration. Only a hold changes it. */
const descriptions = new WeakMap<
  object,
  { policies: RoutePolicies; description: Representation }
>();

/**
 * Returns the representation of a document: the OpenAPI description, or the notice, in HTML or JSON
 * by the request's Accept.
 */
export async function representDocument(
  document: DocumentName,
  headers: Headers,
  { routes, config, policies, now }: {
    readonly routes: readonly Route[];
    readonly config: Omit<HandlerConfig, "cacheMaxAge">;
    /** The policies at present. */
    readonly policies: RoutePolicies;
    /** Milliseconds since the epoch. */
    readonly now: number;
  },
): Promise<Representation> {
  if (document === "description") {
    const known = descriptions.get(config);
    if (known?.policies === policies) return known.description;
    const text = describeApi(routes, { ...config, policies });
    const description = await representText("application/json", text);
    descriptions.set(config, { policies, description });
    return description;
  }
  const { policy: configured, contact } = config;
  const shared = Object.keys(policies).find((path) => config.policies[path] === configured);
  const common = shared === undefined ? configured : policies[shared] ?? configured;
  const endpoints = routes.flatMap((route) => {
    const { successor } = route;
    const policy = policies[pathOf(route)];
    if (successor === undefined || policy === undefined) return []; // not deprecated
    return [{
      path: withToken(pathOf(route), "{token}"),
      methods: [...METHODS],
      successor: withToken(successor, "{token}"),
      policy,
    }];
  });
  const notice = noticeAt(common, endpoints, { now, contact });
  const validatorFields: Field[] = [["Vary", "Accept"]];
  if (prefersJson(headers)) {
    const text = JSON.stringify(notice, null, 2) + "\n";
    return await representText("application/json", text, { validatorFields });
  }
  const { html, contentSecurityPolicy } = await noticePage(notice, {
    items: itemsOn(routes),
    types: PROBLEM_TYPES,
    now,
  });
  return await representText("text/html; charset=utf-8", html, {
    validatorFields,
    contentFields: [["Content-Language", "en"], ["Content-Security-Policy", contentSecurityPolicy]],
  });
}

/** Returns the paths at which items stay, and what each serves. */
function itemsOn(routes: readonly Route[]): { path: string; serves: string }[] {
  return routes.flatMap((route) => {
    if (typeof route.serves === "string" || route.successor !== undefined) return [];
    const path = withToken(pathOf(route), "{token}");
    return [{ path, serves: `published ${route.serves.join(" or ")}` }];
  });
}

/**
 * Represents a text in UTF-8. It has no Last-Modified, because documents can change with time
 * alone.
 *
 * @param more Additional fields.
 */
export async function representText(
  type: string,
  text: string,
  more: Partial<Pick<Representation, "validatorFields" | "contentFields">> = {},
): Promise<Representation> {
  const { validatorFields = [], contentFields = [] } = more;
  const content = new TextEncoder().encode(text);
  // Importing node:crypto would take 35 ms of the start on Deno 2.9.6.
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content)).toHex();
  return {
    length: content.length,
    etag: { weak: false, opaque: digest },
    lastModified: undefined,
    validatorFields: [["ETag", `"${digest}"`], ...validatorFields],
    contentFields: [
      ["Content-Type", type],
      ["Accept-Ranges", "bytes"],
      ["Repr-Digest", reprDigest(digest)],
      ["X-Content-Type-Options", "nosniff"],
      ...contentFields,
    ],
    open: ({ first, last } = { first: 0, last: content.length - 1 }) =>
      Promise.resolve(content.slice(first, last + 1)),
  };
}
