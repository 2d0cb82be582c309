/**
 * Routes for tests: those of the server, with two deprecated ones whether or not it still has any.
 */

import type { Route } from "../../lib/server/route.ts";
import { ROUTES as SERVED } from "../../main.ts";
import { fromRoot } from "./paths.ts";

const MEDIA = "/media/:token";

/** What runs the server with them. */
export const MAIN = fromRoot(
  SERVED.some(({ successor }) => successor !== undefined)
    ? "main.ts"
    : "tests/support/retiring_main.ts",
);

export const ROUTES: readonly Route[] = [
  { pattern: new URLPattern({ pathname: "/audio/:token" }), serves: ["audio"], successor: MEDIA },
  { pattern: new URLPattern({ pathname: "/video/:token" }), serves: ["video"], successor: MEDIA },
  ...SERVED.filter(({ successor }) => successor === undefined),
];
