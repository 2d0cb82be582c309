/**
 * The server's handler, for tests that send requests to it without a socket.
 */

import type { HandlerOptions } from "../../lib/server/handler.ts";
import { prepared } from "../../lib/server/prepared.ts";
import { createHandler } from "../../main.ts";

/** Creates the handler as it is served: with prepared responses around it. */
export function servedHandler(
  options: HandlerOptions,
): (request: Request) => Response | Promise<Response> {
  const { storage: { generations }, clock } = options;
  return prepared(createHandler(options), { generations, clock });
}

/** Creates the handler without prepared responses. */
export function plainHandler(options: HandlerOptions): (request: Request) => Promise<Response> {
  const handle = createHandler(options);
  return async (request) => (await handle(request)).response;
}
