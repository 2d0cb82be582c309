/** The options of `withLifecycle()` and `retire()`. */

import type { Field } from "../../http/outcome.ts";
import { printFailure, readOr } from "../any_value.ts";
import { mismatch, requireNames } from "../mismatch.ts";
import type { Moment } from "../policy.ts";
import type { RefusalContent, RefusalProblem } from "./refusal_content.ts";

/** A request as the options receive it: a `Request`, or these members for a Node request. */
export type RequestHead = Pick<Request, "method" | "url" | "headers">;

/** A request to a retired endpoint, as passed to `onCount`, at the moment that determined the response. */
export interface LifecycleCall extends Moment {
  /** The result of `route` for the request. */
  readonly route: string | undefined;
  /**
   * The status of the response; 0 if the client disconnected before the response was sent. If a
   * handler in `withLifecycle()` throws, 500, or the status of the `Response` that it throws.
   */
  readonly status: number;
  /**
   * The product in User-Agent, like "curl"; "(no User-Agent)" without the field, and "(other)" if
   * it names no usable product.
   */
  readonly client: string;
  /**
   * Whether the removal breaks the call: it was refused, or it is no OPTIONS and was not answered
   * 400, 401, 403, 404, 405, 407 or 410, except those that the option `answers` of a record has. The
   * removal breaks no call of `lifecycle check`.
   */
  readonly breaks: boolean;
}

/**
 * Options besides the policy. If one of them throws, the error is logged, and the request is still
 * served. All but `onCount` must return a value; a promise counts as an error.
 */
export interface LifecycleOptions<
  Incoming extends RequestHead = Request,
  Rest extends readonly unknown[] = readonly unknown[],
> {
  /**
   * Returns the URL of the requested resource's replacement, if there is one. Accepts a path that
   * starts with one `/`, a URL at the origin of the request (sent as a path), or a URL at
   * `successorOrigin`, of at most 1,024 characters. Because requests are untrusted, anything else
   * is rejected, as are the request's own URL and an exception. The response then has no link, and
   * is 410 instead of 308. Only the first rejection is logged.
   */
  readonly successor?: ((request: Incoming) => string | undefined) | undefined;
  /** An origin allowed for successors besides the request's own, like `https://example.com`. */
  readonly successorOrigin?: string | undefined;
  /**
   * Returns whether a request may be refused in brownouts and after the removal. If not, the request
   * is handled, its response carries the announcement, and it counts like any other. Default: all
   * methods but OPTIONS may be refused, so that CORS preflights succeed and pages can read refusals.
   */
  readonly applies?: ((request: Incoming) => boolean) | undefined;
  /**
   * Returns fields to add to refusals. The handler cannot add them, because it never sees a refused
   * request. Default: fields that let pages of any origin read refusals. Return none if a layer in
   * front adds Access-Control-Allow-Origin.
   */
  readonly refusalFields?: ((request: Incoming) => Iterable<Field>) | undefined;
  /**
   * Returns the content of a refusal with 410 or 503, in place of the problem (RFC 9457). Also called
   * for a HEAD, which must get the same length and type as a GET. If the content is not valid, the
   * problem is sent. Escape what you put into HTML: the successor is made of the request's URL.
   */
  readonly refusalBody?:
    | ((problem: RefusalProblem, request: Incoming) => RefusalContent)
    | undefined;
  /**
   * Seconds for which caches may store a refusal after the sunset, up to 2³¹. Set this only if the
   * URL alone decides whether a request is refused. If the application mounts the library by a
   * request field, or `applies` reads one, a cache would give one client's refusal to others.
   * Default: no cache may store a refusal.
   */
  readonly maxAge?: number | undefined;
  /** Names the route of a request, for `onCount`. */
  readonly route?: ((request: Incoming) => string) | undefined;
  /** Called once for each call, with the handler's arguments, to count who still calls. */
  readonly onCount?: ((call: LifecycleCall, request: Incoming, ...rest: Rest) => void) | undefined;
  /** Returns the time in milliseconds since the epoch. Default: the system clock. */
  readonly clock?: (() => number) | undefined;
}

const FUNCTIONS = [
  "successor",
  "applies",
  "refusalFields",
  "refusalBody",
  "route",
  "onCount",
  "clock",
];

/** The names of the options. */
export const LIFECYCLE_OPTION_NAMES: readonly string[] = [
  ...FUNCTIONS,
  "successorOrigin",
  "maxAge",
];

/**
 * Validates the options, since callers may not use TypeScript.
 *
 * @throws {TypeError} If an option is unknown or of the wrong type, `maxAge` is out of range (RFC
 *   9111 §1.2.2), or `clock` returns no instant.
 */
export function requireOptions(options: Pick<LifecycleOptions, "clock" | "maxAge">): void {
  requireNames(options, LIFECYCLE_OPTION_NAMES);
  for (const [name, value] of Object.entries(options)) {
    if (!FUNCTIONS.includes(name) || value === undefined || typeof value === "function") continue;
    throw new TypeError(mismatch(name, value, "a function"));
  }
  const { maxAge = 0, clock = Date.now } = options;
  if (!Number.isInteger(maxAge) || maxAge < 0 || maxAge > 2 ** 31) {
    throw new TypeError(
      mismatch("maxAge", maxAge, "a whole number of seconds, at most 2147483648"),
    );
  }
  requireInstant(clock());
}

/**
 * Returns what the option `clock` returned.
 *
 * @throws {TypeError} If it is no instant that a `Date` can have.
 */
export function requireInstant(now: unknown): number {
  if (typeof now === "number" && Math.abs(now) <= MAX_INSTANT) return now;
  throw new TypeError(mismatch("clock", now, "a function that returns milliseconds"));
}

/** The last instant that a `Date` can have, in milliseconds since the epoch. */
const MAX_INSTANT = 8.64e15;

/** The functions whose results nobody waits for. */
const MAY_BE_ASYNC = ["onCount", "log"];

/**
 * Calls a function of the options. Logs an exception, and a promise in place of a value: it would
 * pass for true, an instant or fields.
 *
 * @returns The function's value; `undefined` if it failed.
 */
export function attempt<Result>(
  name: string,
  call: () => Result | PromiseLike<unknown>,
): Result | undefined {
  const log = (error: unknown) => printFailure(`The option ${name} failed:`, error);
  try {
    const result = call();
    if (!isPromise(result)) return result;
    result.then(undefined, log);
    if (!MAY_BE_ASYNC.includes(name)) log("expected a value, got a promise");
  } catch (error) {
    log(error);
  }
  return undefined;
}

/** Returns whether a value is a promise of any realm. Jest runs each test file in its own realm. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return readOr(false, () => typeof Object(value).then === "function");
}
