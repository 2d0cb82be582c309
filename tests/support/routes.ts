/** Routes for tests: those of the server, with the same two deprecated ones whichever it has. */

import type { Policy, RoutePolicies } from "../../lib/lifecycle/policy.ts";
import type { HandlerConfig } from "../../lib/server/handler.ts";
import { deprecatedPaths, type Route } from "../../lib/server/route.ts";
import { ROUTES as SERVED } from "../../main.ts";
import { fromRoot } from "./paths.ts";

const MEDIA = "/media/:token";

export const ROUTES: readonly Route[] = [
  { pattern: new URLPattern({ pathname: "/audio/:token" }), serves: ["audio"], successor: MEDIA },
  { pattern: new URLPattern({ pathname: "/video/:token" }), serves: ["video"], successor: MEDIA },
  ...SERVED.filter(({ successor }) => successor === undefined),
];

/** What runs the server with them. */
export const MAIN = fromRoot(
  deprecatedPaths(SERVED).join() === deprecatedPaths(ROUTES).join()
    ? "main.ts"
    : "tests/support/retiring_main.ts",
);

/**
 * The settings of a server with these routes under a policy.
 *
 * @param own The policies of the routes that have another one, by path.
 */
export function underPolicy(
  policy: Policy,
  own: RoutePolicies = {},
): Pick<HandlerConfig, "policy" | "policies"> {
  const policies = deprecatedPaths(ROUTES).map((path) => [path, own[path] ?? policy]);
  return { policy, policies: Object.fromEntries(policies) };
}
