/**
 * Turns a request into a response: finds the route, gets a decision on the answer, adds the fields
 * that every answer of the route carries, and sends the same to GET and HEAD.
 */

import { type Answer, type Field, openBody, toResponse } from "../http/answer.ts";
import { andThen, attempt, type Awaitable } from "../http/awaitable.ts";
import type { Retirement } from "./retirement.ts";
import { type FreshnessLimit, limitCacheControl } from "../lifecycle/freshness.ts";
import { CORS_FIELDS } from "../http/cors.ts";
import { PreparedResponses, responseOf } from "./prepared.ts";
import { type Problem, problemAnswer } from "../http/problem.ts";
import { returnBytes } from "../storage/borrowed_bytes.ts";
import type { Generations } from "../storage/generations.ts";
import type { Matcher, Target } from "./route.ts";

/** Handles a request. The response may be shared with other requests: do not modify it. */
export type Handler = (request: Request) => Awaitable<Response>;

/** The decisions that a responder carries out. */
export interface Decisions {
  /** Finds the target of a request. */
  readonly match: Matcher;
  /** Decides on the answer to a request received at an instant, in milliseconds since the epoch. */
  readonly decide: (
    request: Request,
    target: Target,
    instant: number,
  ) => Awaitable<Answer | Problem>;
  /** Decides on the answer when that failed, or when the content could not be opened. */
  readonly fail: (error: unknown, request: Request, target: Target) => Problem;
  /** Adds the fields that announce a retirement. */
  readonly retirement: Pick<Retirement, "fields" | "links" | "until" | "counterOf" | "count">;
  /** Tells whether lookups are still current; left out if none are cached. */
  readonly generations: Pick<Generations, "generationAt" | "holds"> | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Without a cache, no prepared response depends on storage. */
const CONSTANT = { generationAt: () => 0, holds: () => true };

/** Creates a handler that never rejects. */
export function createResponder(decisions: Decisions): Handler {
  const { match, decide, fail, retirement, now, generations = CONSTANT } = decisions;
  const prepared = new PreparedResponses();

  function respond(request: Request, instant: number): Awaitable<Response> {
    const target = match(request.url, request.headers.get("host"));
    const generation = generations.generationAt(instant);
    // The phase is that of the time when the request was received, however long the answer takes.
    const until = retirement.until(target, instant);
    const send = (outcome: Answer | Problem) => {
      const answer = "detail" in outcome
        ? problemAnswer(outcome, retirement.links(target, outcome))
        : outcome;
      const fields = [...answer.fields, ...CORS_FIELDS, ...retirement.fields(target, answer)];
      const unchangedUntil = keepWithinPhase(fields, { until, now: now() });
      return andThen(openBody(request.method, answer), (body) => {
        const { status } = answer;
        const response = toResponse({ status, fields }, body);
        if (body instanceof Uint8Array) returnBytes(body);
        const freshUntil = Math.min(answer.freshUntil ?? 0, unchangedUntil);
        const counter = retirement.counterOf(request.method, target, { status, instant });
        retirement.count(counter, request, instant);
        return prepared.keep(request, body, { response, counter, freshUntil, generation });
      });
    };
    return attempt(() => andThen(decide(request, target, instant), send), (error) => {
      prepared.clear(); // they may depend on what has just failed
      return send(fail(error, request, target));
    });
  }

  return (request) => {
    const instant = now();
    const known = prepared.find(request, instant);
    if (known === undefined || !generations.holds(known.generation, instant)) {
      return respond(request, instant);
    }
    retirement.count(known.counter, request, instant);
    return responseOf(known);
  };
}

/**
 * Prevents caches from using an answer beyond the phase in which it was given.
 *
 * @param fields The fields of the answer; modified in place.
 * @returns When they would change, in milliseconds since the epoch.
 */
function keepWithinPhase(fields: Field[], limit: FreshnessLimit): number {
  const index = fields.findIndex(([name]) => name === "Cache-Control");
  const [name, value] = fields[index] as Field;
  const { cacheControl, unchangedUntil } = limitCacheControl(value, limit);
  fields[index] = [name, cacheControl];
  return unchangedUntil;
}
