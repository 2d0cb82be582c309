/** The server's handler, for tests that send requests to it without a socket. */

import type { HandlerOptions } from "../../lib/server/handler.ts";
import type { CachedStorage } from "../../lib/storage/cache.ts";
import { prepareResponses } from "../../lib/server/prepared_responses.ts";
import { createHandler } from "../../main.ts";
import { ROUTES } from "./routes.ts";

/** What a test gives: all but the routes. */
type Options = Omit<HandlerOptions, "routes">;

/** Creates the handler as it is served: with prepared responses around it. */
export function servedHandler(
  options: Options & { readonly storage: CachedStorage },
): (request: Request) => Response | Promise<Response> {
  const { storage: { generations }, clock } = options;
  return prepareResponses(createHandler({ ...options, routes: ROUTES }), { generations, clock });
}

/** Creates the handler without prepared responses. */
export function plainHandler(options: Options): (request: Request) => Promise<Response> {
  const handle = createHandler({ ...options, routes: ROUTES });
  return async (request) => (await handle(request)).response;
}
