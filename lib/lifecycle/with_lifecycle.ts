/**
 * Retirement for any Fetch API handler.
 */

import { announcementFields } from "./announcement.ts";
import { limitFreshness } from "./freshness.ts";
import { momentAt, type Policy } from "./policy.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { successorOf } from "./successor.ts";

/** Options besides the policy. */
export interface LifecycleOptions {
  /**
   * Returns the URL of what replaces the requested resource, if anything does: a path that starts
   * with one `/`, or a URL at the origin of the request or at `successorOrigin`. Requests are
   * untrusted, so anything else, or an exception, counts as no successor: no link, and 410 instead
   * of 308. The first one ignored is logged to the console.
   */
  readonly successor?: (request: Request) => string | undefined;
  /** An origin allowed for successors besides the request's own, like `https://example.com`. */
  readonly successorOrigin?: string;
  /**
   * Tells whether brownouts and the removal apply to a request. Other requests are still handled,
   * with the announcement. Default: all but OPTIONS, so that CORS preflights succeed and a page can
   * read the refusal.
   */
  readonly applies?: (request: Request) => boolean;
  /** Seconds for which caches may store the response after the sunset. Default: 300. */
  readonly maxAge?: number;
  /** Returns the time in milliseconds since the epoch. Default: the system clock. */
  readonly clock?: () => number;
}

/**
 * Wraps a handler to retire what it serves: announces the retirement on every response
 * (Deprecation, RFC 9745; Sunset, RFC 8594; Link, RFC 8288), answers 503 in brownouts and 410 after
 * the sunset (or 308 to the successor), and keeps caches from reusing a response beyond its phase.
 * HEAD and GET get the same fields.
 *
 * @param handler Handles requests that are not refused. Any Link it sets is kept.
 * @param policy See `definePolicy()`.
 * @returns A handler with the same signature. It rejects when `handler` does.
 * @throws {TypeError} If `successorOrigin` is not an origin.
 *
 * @example Retire a whole server
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { definePolicy, withLifecycle } from "@media-head/media-head/lifecycle";
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
export function withLifecycle<Rest extends unknown[]>(
  handler: (request: Request, ...rest: Rest) => Response | Promise<Response>,
  policy: Policy,
  options: LifecycleOptions = {},
): (request: Request, ...rest: Rest) => Promise<Response> {
  const { applies = ({ method }) => method !== "OPTIONS", maxAge = 300, clock = Date.now } =
    options;
  const nameSuccessor = successorOf(options);
  return async (request, ...rest) => {
    const start = clock();
    const successor = nameSuccessor(request);
    const refused = applies(request)
      ? refusal(policy, { now: start, successor, maxAge })
      : undefined;
    const { body, status, headers, statusText } = refused === undefined
      ? await handler(request, ...rest)
      : responseOf(refused, request.method);
    const announced = new Headers(headers); // those of some responses are immutable
    for (const [name, value] of announcementFields(policy, successor)) {
      if (name === "Link") announced.append(name, value);
      else announced.set(name, value);
    }
    const limit = { until: momentAt(policy, start).until, now: clock() };
    const { fields } = limitFreshness([...announced], limit);
    return new Response(body, { status, statusText, headers: fields });
  };
}

function responseOf({ status, fields, body }: Refusal, method: string): Response {
  return new Response(method === "HEAD" ? null : body, { status, headers: [...fields] });
}
