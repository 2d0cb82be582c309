/** Retirement for any Fetch API handler. */

import type { Field } from "../../http/outcome.ts";
import { readOr } from "../any_value.ts";
import type { Policy } from "../policy.ts";
import type { Refusal } from "../refusal.ts";
import { isPromise, type LifecycleOptions } from "./options.ts";
import { membersOf } from "./request_head.ts";
import { type ApplyRetirement, type Retirement, retirementOf } from "./retirement.ts";

/**
 * Wraps a handler to retire its resources. The new handler announces the retirement on every
 * response (Deprecation, RFC 9745; Sunset, RFC 8594; Link, RFC 8288). It sends 503 in brownouts,
 * and 410 after the sunset (or 308 to the successor). It keeps caches from reusing a response
 * beyond its phase. HEAD and GET get the same fields. Pages of other origins may read them if they
 * may read the rest of the response. The fields are set on the handler's own response; only an
 * immutable response is copied.
 *
 * @param handler Handles requests that are not refused. Any Link it sets is kept.
 * @returns A handler with the same signature. It rejects when `handler` does. `onCount` is then
 *   called with the status of a `Response` that was thrown, or else 500.
 * @throws {TypeError} If the policy is not from `definePolicy()`, or an option is not valid.
 *
 * @example Retire a whole server
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { definePolicy, withLifecycle } from "@media-head/lifecycle";
 *
 * const policy = definePolicy({
 *   deprecatedAt: "2026-11-21",
 *   sunsetAt: "2027-06-30",
 *   brownouts: ["2027-05-03T09:00Z/PT1H"],
 *   documentation: "https://example.com/deprecation",
 * });
 * const handler = withLifecycle(() => new Response("old"), policy, {
 *   successor: ({ url }) => url.replace("/v1/", "/v2/"),
 *   clock: () => Date.parse("2027-05-03T09:30:00Z"), // default: the system clock
 * });
 *
 * const { status, headers } = await handler(new Request("https://example.com/v1/songs?page=2"));
 * assertEquals(status, 503); // a brownout
 * assertEquals(headers.get("Retry-After"), "Mon, 03 May 2027 10:00:00 GMT");
 * assertEquals(headers.get("Link")?.split(", ")[0], '</v2/songs?page=2>; rel="successor-version"');
 *
 * if (import.meta.main) Deno.serve(handler);
 * ```
 */
export function withLifecycle<Incoming extends Request, Rest extends unknown[]>(
  handler: (request: Incoming, ...rest: Rest) => Response | Promise<Response>,
  policy: Policy,
  options: LifecycleOptions<Incoming, Rest> = {},
): (request: Incoming, ...rest: Rest) => Promise<Response> {
  return handlerOf(handler, retirementOf(policy, options));
}

/** Returns the handler of {@linkcode withLifecycle}, given what applies the policy. */
export function handlerOf<Incoming extends Request, Rest extends unknown[]>(
  handler: (request: Incoming, ...rest: Rest) => Response | Promise<Response>,
  apply: ApplyRetirement<Incoming, Rest>,
): (request: Incoming, ...rest: Rest) => Promise<Response> {
  return async (request, ...rest) => {
    const { refused, announce, arrive, count } = apply(request, ...rest);
    const leave = () => count?.(0);
    arrive();
    try {
      const answer = refused === undefined
        ? handler(request, ...rest)
        : responseOf(refused, request);
      const response = count !== undefined && isPromise(answer)
        ? await whileConnected(answer, request, leave)
        : await answer;
      const announced = withAnnouncement(response, request, announce);
      count?.(announced.status);
      return announced;
    } catch (error) {
      if (count !== undefined) {
        const signal = signalOf(request);
        await undefined; // by then, Deno has aborted a new signal if the client has left
        count(isAborted(signal) ? 0 : statusOf(error));
      }
      throw error;
    }
  };
}

function responseOf({ status, fields, body }: Refusal, request: Request): Response {
  const { method } = membersOf(request, ["method"]);
  return new Response(method === "HEAD" ? null : body, { status, headers: [...fields] });
}

/**
 * Milliseconds that a call takes before its client's disconnection is listened for. To listen
 * takes Deno a third of the time of a plain call, and most handlers are faster.
 */
const LISTEN_AFTER_MS = 100;

/** Waits for a result. Calls `leave` if the client disconnects meanwhile. */
async function whileConnected<Result>(
  result: PromiseLike<Result>,
  request: Request,
  leave: () => void,
): Promise<Result> {
  let signal: AbortSignal | undefined;
  const timer = setTimeout(() => {
    signal = signalOf(request);
    if (isAborted(signal)) leave();
    else readOr(undefined, () => signal?.addEventListener("abort", leave, { once: true }));
  }, LISTEN_AFTER_MS);
  try {
    return await result;
  } finally {
    clearTimeout(timer);
    readOr(undefined, () => signal?.removeEventListener("abort", leave));
  }
}

/** Returns the signal of a request, which some platforms leave out. */
function signalOf(request: Request): AbortSignal | undefined {
  return readOr(undefined, () => request.signal ?? undefined);
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return readOr(false, () => signal?.aborted === true);
}

/** Returns the status of the response that a server makes of what a handler throws. */
function statusOf(error: unknown): number {
  // Of any realm: Jest runs each test file in its own.
  const isResponse = () => Object.prototype.toString.call(error) === "[object Response]";
  return readOr(500, () => isResponse() ? (error as Response).status : 500);
}

/** The request of each announced response, and the fields that the handler set on it. */
const announced = new WeakMap<Response, { request: Request; fields: Field[] }>();

/** Sets fields on a response, or on a copy if it is immutable or answered an earlier request. */
function withAnnouncement(
  response: Response,
  request: Request,
  announce: Retirement["announce"],
): Response {
  const earlier = announced.get(response);
  const isReused = earlier !== undefined && earlier.request !== request;
  const fields = isReused ? earlier.fields : [...response.headers];
  const changes = announce(fields, response.status);
  const set = (target: Response) => {
    for (const [name, value] of changes) target.headers.set(name, value);
    return target;
  };
  // Read `body` for a copy only: it becomes a stream, and Deno sends that without Content-Length.
  const { status, statusText } = response;
  const target = isReused
    ? new Response(response.body, { status, statusText, headers: fields })
    : response;
  try {
    set(target);
    if (earlier === undefined) announced.set(target, { request, fields });
    return target;
  } catch { // immutable, like those of fetch() and Response.redirect()
    // An upgrade and Response.error() cannot be copied.
    return status < 200 ? response : set(new Response(response.body, response));
  }
}
