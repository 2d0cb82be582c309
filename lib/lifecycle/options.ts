/** The options of `withLifecycle()` and `retire()`. */

import type { Field } from "../http/outcome.ts";
import type { Phase } from "./policy.ts";

/** A request as the options get it: a `Request`, or these parts of Node's request. */
export type RequestHead = Pick<Request, "method" | "url" | "headers">;

/** A request to a retired endpoint, as passed to `onCount`. */
export interface LifecycleCall {
  /** What `route` returns for the request. */
  readonly route: string | undefined;
  /** The phase that decided on the response. */
  readonly phase: Phase;
  /** The status of the response; 0 if the client closed the connection before it was sent. */
  readonly status: number;
  /**
   * The product in User-Agent, like "curl"; else "(no User-Agent)", or "(other)" if it names none.
   */
  readonly client: string;
  /** Whether the removal breaks the call, because it was refused or would not fail anyway. */
  readonly breaks: boolean;
}

/**
 * Options besides the policy. If one of them throws or rejects, the error is logged and the request
 * is served. All but `onCount` must return a value and not a promise. If one returns a promise, the
 * default takes its place, and the first promise of each option is logged.
 */
export interface LifecycleOptions<
  Incoming extends RequestHead = Request,
  Rest extends readonly unknown[] = readonly unknown[],
> {
  /**
   * Returns the URL of the requested resource's replacement, if there is one. It is a path that
   * starts with one `/`, a URL at the origin of the request (which is sent as a path), or a URL at
   * `successorOrigin`. It has at most 1,024 characters. Because requests are untrusted, anything
   * else is rejected, and so are the request's own URL and an exception. Then there is no link, and
   * 410 instead of 308. Only the first rejection is logged.
   */
  readonly successor?: ((request: Incoming) => string | undefined) | undefined;
  /** An origin allowed for successors besides the request's own, like `https://example.com`. */
  readonly successorOrigin?: string | undefined;
  /**
   * Returns whether brownouts and the removal apply to a request. If not, the request is handled,
   * and its response announced. Default: they apply to all but OPTIONS, so that CORS preflights
   * succeed and a page can read the refusal.
   */
  readonly applies?: ((request: Incoming) => boolean) | undefined;
  /**
   * Returns fields to add to refusals, because the handler never sees these. Default: fields that
   * let pages of any origin read refusals. Return none if a layer in front adds
   * Access-Control-Allow-Origin.
   */
  readonly refusalFields?: ((request: Incoming) => Iterable<Field>) | undefined;
  /** Seconds for which caches may store the response after the sunset, up to 2³¹. Default: 300. */
  readonly maxAge?: number | undefined;
  /** Names the route of a request, for `onCount`. */
  readonly route?: ((request: Incoming) => string) | undefined;
  /** Called for each response with what the handler got, to count who still calls. */
  readonly onCount?: ((call: LifecycleCall, request: Incoming, ...rest: Rest) => void) | undefined;
  /** Returns the time in milliseconds since the epoch. Default: the system clock. */
  readonly clock?: (() => number) | undefined;
}

/** The client name of `lifecycle check`, whose calls break nothing. */
export const CHECK_CLIENT = "media-head-check";

const FUNCTIONS = ["successor", "applies", "refusalFields", "route", "onCount", "clock"];
const NAMES = [...FUNCTIONS, "successorOrigin", "maxAge"];

type Checked = {
  readonly maxAge?: number | undefined;
  readonly clock?: (() => number) | undefined;
};

function requireOptions(options: Checked): void {
  for (const [name, value] of Object.entries(options)) {
    if (!NAMES.includes(name)) throw new TypeError(`${name}: expected one of ${NAMES.join(", ")}`);
    if (!FUNCTIONS.includes(name) || value === undefined || typeof value === "function") continue;
    throw new TypeError(`${name}: expected a function, got ${JSON.stringify(value)}`);
  }
  const { maxAge = 0, clock = Date.now } = options;
  if (!Number.isInteger(maxAge) || maxAge < 0 || maxAge > 2 ** 31) {
    const expected = "a whole number of seconds from 0 to 2147483648";
    const got = typeof maxAge === "string" ? JSON.stringify(maxAge) : String(maxAge);
    throw new TypeError(`maxAge: expected ${expected}, got ${got}`);
  }
  const now: unknown = attempt("clock", () => clock());
  if (now === undefined || isPromise(now) || Number.isFinite(now)) return; // or it has been logged
  throw new TypeError(`clock: expected a function that returns milliseconds, got ${String(now)}`);
}

/** Calls a function of the options, and logs what it throws, or what its promise rejects with. */
export function attempt<Result>(name: string, call: () => Result): Result | undefined {
  const log = (error: unknown) => void console.error(`The option ${name} failed:`, error);
  try {
    const result = call();
    if (isPromise(result)) result.then(undefined, log);
    return result;
  } catch (error) {
    return log(error);
  }
}

/**
 * Checks what TypeScript may not have checked, and returns a function that calls a function of the
 * options for its value. A promise would count as true, as an instant or as fields. So the default
 * takes its place, and the first promise of each option is logged.
 *
 * @throws {TypeError} If an option is unknown or of the wrong type, `maxAge` is out of range (RFC
 *   9111 §1.2.2), or `clock` returns no instant.
 */
export function optionReader(options: Checked) {
  requireOptions(options);
  const logged = new Set<string>();
  return <Result>(name: string, call: () => Result, byDefault: Result): Result | undefined => {
    const result = attempt(name, call);
    if (!isPromise(result)) return result;
    if (!logged.has(name)) {
      console.error(`The option ${name} returned a promise, not a value: used the default`);
    }
    logged.add(name);
    return byDefault;
  };
}

/**
 * Whether a value is a promise of any realm, since each test of Jest runs in a realm of its own.
 */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof Object(value).then === "function";
}
