/**
 * From a request to its response: finds the route, has the answer decided, adds what every answer
 * of the route carries, and sends the same to GET and HEAD.
 */

import { type Answer, type Field, toResponse } from "./answer.ts";
import { limitFreshness } from "../lifecycle/freshness.ts";
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
  /** The fields that every answer carries. */
  readonly fields: (target: Target) => readonly Field[];
  /** When the phase ends that an answer belongs to: milliseconds since the epoch, or Infinity. */
  readonly until: (target: Target) => number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Makes a handler that never rejects. */
export function createResponder({ match, decide, fail, fields, until, now }: Decisions): Handler {
  const prepared = new PreparedResponses();

  async function respond(request: Request): Promise<Response> {
    const target = match(request.url);
    const phaseEnd = until(target);
    const send = async (answer: Answer) => {
      const all = { ...answer, fields: [...answer.fields, ...fields(target)] };
      const response = await toResponse(request.method, all);
      const unchanged = limitFreshness(response.headers, { until: phaseEnd, now: now() });
      const freshUntil = Math.min(answer.freshUntil ?? 0, unchanged);
      prepared.keep(request, response, { now: now(), freshUntil });
      return response;
    };
    try {
      return await send(await decide(request, target));
    } catch (error) {
      prepared.clear(); // what failed may be what something kept was made of
      return send(fail(error, request, target));
    }
  }

  return (request) => prepared.find(request, now()) ?? respond(request);
}
