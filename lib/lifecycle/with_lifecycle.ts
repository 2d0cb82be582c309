/**
 * Retirement for any Fetch API handler.
 */

import { clientOf } from "../http/client_name.ts";
import { CORS_FIELDS } from "../http/cors.ts";
import type { Field } from "../http/outcome.ts";
import { announcementFields } from "./announcement.ts";
import { limitFreshness } from "./freshness.ts";
import { momentAt, type Phase, type Policy } from "./policy.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { successorOf } from "./successor.ts";

/** A request to a retired endpoint, as passed to `onCount`. */
export interface LifecycleCall {
  /** What `route` returns for the request. */
  readonly route: string | undefined;
  /** The phase that decided on the response. */
  readonly phase: Phase;
  /** The status of the response. */
  readonly status: number;
  /** The product name in User-Agent, like "curl"; "(no User-Agent)" without one, "(other)" if invalid. */
  readonly client: string;
}

/** Options besides the policy. */
export interface LifecycleOptions {
  /**
   * Returns the URL of what replaces the requested resource, if anything does: a path that starts
   * with one `/`, or a URL at the origin of the request or at `successorOrigin`. Requests are
   * untrusted, so anything else, the request's own URL, or an exception, counts as no successor: no
   * link, and 410 instead of 308. The first one ignored is logged to the console.
   */
  readonly successor?: ((request: Request) => string | undefined) | undefined;
  /** An origin allowed for successors besides the request's own, like `https://example.com`. */
  readonly successorOrigin?: string | undefined;
  /**
   * Tells whether brownouts and the removal apply to a request. Other requests are still handled,
   * with the announcement. Default: all but OPTIONS, so that CORS preflights succeed and a page can
   * read the refusal.
   */
  readonly applies?: ((request: Request) => boolean) | undefined;
  /**
   * Returns fields to add to refusals, which the handler does not see. Default: those that let pages
   * of any origin read them. Return none if something outside adds Access-Control-Allow-Origin.
   */
  readonly refusalFields?: ((request: Request) => Iterable<Field>) | undefined;
  /** Seconds for which caches may store the response after the sunset, up to 2³¹. Default: 300. */
  readonly maxAge?: number | undefined;
  /** Names the route of a request, for `onCount`. */
  readonly route?: ((request: Request) => string) | undefined;
  /** Called with each response, to count who still calls. An exception is logged to the console. */
  readonly onCount?: ((call: LifecycleCall) => void) | undefined;
  /** Returns the time in milliseconds since the epoch. Default: the system clock. */
  readonly clock?: (() => number) | undefined;
}

/**
 * Wraps a handler to retire what it serves: announces the retirement on every response
 * (Deprecation, RFC 9745; Sunset, RFC 8594; Link, RFC 8288), answers 503 in brownouts and 410 after
 * the sunset (or 308 to the successor), and keeps caches from reusing a response beyond its phase.
 * HEAD and GET get the same fields, which pages of other origins may read if they may read the rest.
 *
 * @param handler Handles requests that are not refused. Any Link it sets is kept.
 * @param policy See `definePolicy()`.
 * @returns A handler with the same signature. It rejects when `handler` does.
 * @throws {TypeError} If the policy is not from `definePolicy()`, `successorOrigin` is not an origin,
 *   or `maxAge` not a whole number from 0 to 2³¹ (RFC 9111 §1.2.2).
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
 *   successor: (request) => new URL(request.url).pathname.replace("/v1/", "/v2/"),
 *   clock: () => Date.parse("2027-05-03T09:30:00Z"), // left out, the system's clock
 * });
 *
 * const { status, headers } = await handler(new Request("https://example.com/v1/songs"));
 * assertEquals(status, 503); // a brownout
 * assertEquals(headers.get("Retry-After"), "Mon, 03 May 2027 10:00:00 GMT");
 * assertEquals(headers.get("Link")?.split(", ")[0], '</v2/songs>; rel="successor-version"');
 *
 * if (import.meta.main) Deno.serve(handler);
 * ```
 */
export function withLifecycle<Incoming extends Request, Rest extends unknown[]>(
  handler: (request: Incoming, ...rest: Rest) => Response | Promise<Response>,
  policy: Policy,
  options: LifecycleOptions = {},
): (request: Incoming, ...rest: Rest) => Promise<Response> {
  const { applies = ({ method }) => method !== "OPTIONS", maxAge = 300, clock = Date.now } =
    options;
  const { refusalFields = () => CORS_FIELDS, route, onCount } = options;
  if (!Number.isFinite(policy.deprecatedAt)) {
    const got = JSON.stringify(policy.deprecatedAt);
    throw new TypeError(`policy: expected the result of definePolicy(), got deprecatedAt ${got}`);
  }
  if (!Number.isInteger(maxAge) || maxAge < 0 || maxAge > 2 ** 31) {
    const expected = "a whole number of seconds from 0 to 2147483648";
    throw new TypeError(`maxAge: expected ${expected}, got ${String(maxAge)}`);
  }
  const nameSuccessor = successorOf(options);
  return async (request, ...rest) => {
    const start = clock();
    const { phase, until } = momentAt(policy, start);
    const successor = nameSuccessor(request);
    // Before the handler, since nothing can be read of a request after its upgrade to a WebSocket.
    const caller = onCount && unlessItThrows(() => ({
      route: route?.(request),
      client: clientOf(request.headers.get("user-agent")),
    }));
    const refused = applies(request)
      ? refusal(policy, { now: start, successor, maxAge })
      : undefined;
    const { body, status, headers, statusText } = refused === undefined
      ? await handler(request, ...rest)
      : responseOf(refused, request, refusalFields);
    const announced = new Headers(headers); // those of some responses are immutable
    for (const [name, value] of announcementFields(policy, successor)) {
      if (name === "Link") announced.append(name, value);
      else announced.set(name, value);
    }
    announced.append("Access-Control-Expose-Headers", EXPOSED);
    const { fields } = limitFreshness([...announced], { until, now: clock() });
    if (caller) unlessItThrows(() => onCount({ ...caller, phase, status }));
    return new Response(body, { status, statusText, headers: fields });
  };
}

/** What pages of other origins may read besides what the handler exposes (Fetch standard §3.3.3). */
const EXPOSED = "Deprecation, Link, Retry-After, Sunset";

function unlessItThrows<T>(count: () => T): T | undefined {
  try {
    return count();
  } catch (error) {
    console.error("Failed to count a call:", error);
    return undefined;
  }
}

function responseOf(
  { status, fields, body }: Refusal,
  request: Request,
  refusalFields: (request: Request) => Iterable<Field>,
): Response {
  const headers = [...fields, ...refusalFields(request)];
  return new Response(request.method === "HEAD" ? null : body, { status, headers });
}
