/**
 * The lifecycle of any Fetch API handler.
 */

import { openBody, toResponse } from "../http/answer.ts";
import { announcementFields } from "./announcement.ts";
import { limitFreshness } from "./freshness.ts";
import { momentAt, type Policy } from "./policy.ts";
import { refusal } from "./refusal.ts";
import { successorOf } from "./successor.ts";

/** What is retired, beyond when. */
export interface LifecycleOptions {
  /**
   * Names what replaces the very thing a request asks for, if there is anything: a path that starts
   * with one `/`, or a URL at the origin of the request or at `successorOrigin`. Clients choose
   * what comes in, so anything else is left out: it is not linked to, and 410 answers instead of
   * 308. So is what could break a Link, and what it throws; the console tells of the first.
   */
  readonly successor?: (request: Request) => string | undefined;
  /** Another origin at which successors may be, like `https://example.com`. */
  readonly successorOrigin?: string;
  /**
   * Whether brownouts and the removal apply to a request; other requests are handled, and
   * announced, as ever. When left out, they apply to all but OPTIONS, so that a page is allowed to
   * see what became of the rest.
   */
  readonly applies?: (request: Request) => boolean;
  /** Seconds for which caches may keep the answer of a final removal: 300 when left out. */
  readonly maxAge?: number;
  /** Milliseconds since the epoch; the system's clock when left out. */
  readonly now?: () => number;
}

/**
 * Retires what a handler serves: announces it on every response (Deprecation, RFC 9745; Sunset,
 * RFC 8594; Link, RFC 8288), answers 410 in brownouts and after the sunset (or then 308 to the
 * successor), and keeps caches from using a response beyond its phase. HEAD and GET get the same.
 *
 * @param handler Handles what is not refused. Its Link stays, and is added to.
 * @param policy See `definePolicy()`.
 * @returns A handler of the same shape. It throws what the handler throws.
 * @throws {TypeError} When `successorOrigin` is no origin.
 *
 * @example Retire everything that a server answers
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
 *   now: () => Date.parse("2027-05-03T09:30:00Z"), // left out, the system's clock
 * });
 *
 * const { status, headers } = await handler(new Request("https://example.com/v1/songs"));
 * assertEquals(status, 410); // a brownout
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
  const { applies = ({ method }) => method !== "OPTIONS", maxAge = 300, now = Date.now } = options;
  const nameSuccessor = successorOf(options);
  return async (request, ...rest) => {
    const start = now();
    const successor = nameSuccessor(request);
    const refused = applies(request)
      ? refusal(policy, { now: start, successor, maxAge })
      : undefined;
    const response = refused === undefined
      ? mutable(await handler(request, ...rest))
      : toResponse(refused, await openBody(request.method, refused));
    for (const [name, value] of announcementFields(policy, successor)) {
      if (name === "Link") response.headers.append(name, value);
      else response.headers.set(name, value);
    }
    limitFreshness(response.headers, { until: momentAt(policy, start).until, now: now() });
    return response;
  };
}

/** The headers of some responses, like those that `fetch` gives, cannot be changed. */
function mutable(response: Response): Response {
  return new Response(response.body, response);
}
