/** The server's handler, for tests that send requests to it without a socket. */

import { FaultLog, type Log } from "../../lib/log/log.ts";
import type { Handler, HandlerOptions } from "../../lib/server/handler.ts";
import { prepareResponses } from "../../lib/server/prepared_responses.ts";
import type { CachedStorage } from "../../lib/storage/cache.ts";
import type { Recorder } from "../../lib/usage/record/recorder.ts";
import { createHandler } from "../../main.ts";
import { ROUTES } from "./routes.ts";

/** What a test gives: all but the routes, where to log faults, and who waits for calls in flight. */
type Options =
  & Omit<HandlerOptions, "routes" | "faults" | "policies" | "recorder">
  & Partial<Pick<HandlerOptions, "policies">>
  & { readonly log: Log; readonly recorder?: Pick<Recorder, "meter" | "fault"> };

function handlerOf({ log, policies, recorder, ...options }: Options): Handler {
  return createHandler({
    ...options,
    recorder: recorder && {
      meter: recorder.meter,
      get fault() {
        return recorder.fault;
      },
      arrive() {},
      leave() {},
    },
    policies: policies ?? (() => options.config.policies),
    routes: ROUTES,
    faults: new FaultLog(log),
  });
}

/** Creates the handler as it is served: with prepared responses around it. */
export function servedHandler(
  options: Options & { readonly storage: CachedStorage },
): (request: Request) => Response | Promise<Response> {
  const { storage: { generations }, clock } = options;
  return prepareResponses(handlerOf(options), { generations, clock });
}

/** Creates the handler without prepared responses. */
export function plainHandler(options: Options): (request: Request) => Promise<Response> {
  const handle = handlerOf(options);
  return async (request) => (await handle(request, options.clock())).response;
}
