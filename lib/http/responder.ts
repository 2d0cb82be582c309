/**
 * From a request to its response: finds the route, has the answer decided, adds what every answer
 * of the route carries, and sends the same to GET and HEAD.
 */

import { type Answer, toResponse } from "./answer.ts";
import type { Retirement } from "../lifecycle/retirement.ts";
import { limitFreshness } from "../lifecycle/freshness.ts";
import { CORS_FIELDS } from "./cors.ts";
import { PreparedResponses } from "./prepared.ts";
import type { Target } from "./route.ts";

/** What handles a request. */
export type Handler = (request: Request) => Response | Promise<Response>;

/** The decisions that a responder carries out. */
export interface Decisions {
  /** Finds what a URL is about. */
  readonly match: (url: string) => Target;
  /** Decides the answer. */
  readonly decide: (request: Request, target: Target) => Promise<Answer>;
  /** Decides the answer when that failed, or the content could not be opened. */
  readonly fail: (error: unknown, request: Request, target: Target) => Answer;
  /** Adds what has to be said of the routes that are retired. */
  readonly retirement: Pick<Retirement, "fields" | "until" | "count">;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Makes a handler that never rejects. */
export function createResponder(decisions: Decisions): Handler {
  const { match, decide, fail, retirement, now } = decisions;
  const prepared = new PreparedResponses();

  async function respond(request: Request): Promise<Response> {
    const target = match(request.url);
    const until = retirement.until(target);
    const send = async (answer: Answer) => {
      const all = {
        ...answer,
        fields: [...answer.fields, ...CORS_FIELDS, ...retirement.fields(target)],
      };
      const response = await toResponse(request.method, all);
      const unchanged = limitFreshness(response.headers, { until, now: now() });
      const freshUntil = Math.min(answer.freshUntil ?? 0, unchanged);
      prepared.keep(request, response, { target, now: now(), freshUntil });
      retirement.count(request, target, response.status);
      return response;
    };
    try {
      return await send(await decide(request, target));
    } catch (error) {
      prepared.clear(); // what failed may be what something kept was made of
      return send(fail(error, request, target));
    }
  }

  return (request) => {
    const known = prepared.find(request, now());
    if (known === undefined) return respond(request);
    retirement.count(request, known.target, known.response.status);
    return known.response;
  };
}
