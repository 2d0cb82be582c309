/**
 * A record of who still calls retired endpoints, in SQLite or PostgreSQL. The command
 * `lifecycle usage` reports on it, and says whether the endpoints can be removed.
 *
 * @module
 */

import { requireDatabaseUrl } from "../database/place.ts";
import { nodeRuntime } from "../database/sqlite/node_runtime.ts";
import { StorageError } from "../errors/storage_error.ts";
import { CONTACT } from "../input/contact.ts";
import { messageOf, withoutPassword } from "../input/printable.ts";
import { FAILED } from "../lifecycle/breaking.ts";
import { mismatch, requireNames } from "../lifecycle/mismatch.ts";
import type { Policy } from "../lifecycle/policy.ts";
import {
  attempt,
  isPromise,
  LIFECYCLE_OPTION_NAMES,
  type LifecycleOptions,
  type RequestHead,
} from "../lifecycle/serving/options.ts";
import {
  middlewareOf,
  type NodeRequest,
  type NodeResponse,
  type RecordedMiddleware,
  retire,
} from "../lifecycle/serving/retire.ts";
import { type ApplyRetirement, retirementOf } from "../lifecycle/serving/retirement.ts";
import { handlerOf } from "../lifecycle/serving/with_lifecycle.ts";
import { FaultLog, lineLog, type Log, type LogEvent } from "../log/log.ts";
import { PhaseLog } from "../log/phases.ts";
import { isProbe } from "./record/client_names.ts";
import { type OpenLedger, openLedger } from "./record/open_ledger.ts";
import { Recorder } from "./record/recorder.ts";
import { type ProcessIdentity, requireRouteNames, sessionFacts } from "./record/records.ts";

export type { RecordedMiddleware } from "../lifecycle/serving/retire.ts";
export type { LogEvent } from "../log/log.ts";

/** The options of {@linkcode openUsage}. */
export interface UsageOptions {
  /**
   * The policy of each route, from `definePolicy()`, by the route's name, e.g. `/v1`. Names are
   * well-formed Unicode without control characters. All processes with the same database count the
   * same routes.
   */
  readonly routes: Readonly<Record<string, Policy>>;
  /**
   * Returns the password for PostgreSQL, in place of the URL's. Called for each new connection.
   * Connecting, this call included, may take 1.5 seconds at most.
   */
  readonly password?: (() => string | Promise<string>) | undefined;
  /**
   * Whether to reject if the process cannot be registered. With `false`, the process starts with a
   * `fault`, and registers when it can. Until then, the record takes none of its calls, and
   * `unrecorded` says what becomes of them. Default: true.
   */
  readonly required?: boolean | undefined;
  /**
   * What to do with a call that the record cannot take within two seconds, for example because the
   * database is away. Default: `"refuse"`, which answers 503 with `Retry-After: 5`. With `"serve"`,
   * the call is served, and the log says so before. The session then says that it may serve such
   * calls: if it ends without `close()`, verdicts are unknown from its last heartbeat on. Calls to a
   * process that never registered are not on record at all.
   */
  readonly unrecorded?: "refuse" | "serve" | undefined;
  /**
   * The URL at which clients reach the application: `https:` or `http:`, without user and password.
   * The page for a client's owner names it.
   */
  readonly publicUrl?: string | undefined;
  /** The contact on the page for a client's owner: a `mailto:` or `https:` URL. */
  readonly contact?: string | undefined;
  /** The number of whole days to retain, at least 1. Default: 400. */
  readonly retainDays?: number | undefined;
  /** Logs an event. Default: prints it to standard error as a line of JSON. */
  readonly log?: ((event: LogEvent) => void) | undefined;
}

/** The options of a route that those of the library lack. */
export interface RouteOptions<Handled extends readonly unknown[]> {
  /**
   * Returns the id of the client that called, as the application knows it after its own
   * authentication, e.g. `request.user?.id`. Called with what the handler got, when the response's
   * head is sent. An id is 1 to 64 printable ASCII characters, without a space at either end;
   * anything else counts as "(other)". Without an id, the client is known by `Origin`, `Referer` or
   * `User-Agent`. Ids are recorded as they are: return no secret and no mail address.
   */
  readonly client?: ((...handled: Handled) => string | number | null | undefined) | undefined;
  /**
   * The statuses that clients of the route read as an answer, e.g. `[404]` where they ask whether
   * something exists. Requests that are answered with one of them count as calls, and `breaks` is
   * true for them. Only 400, 401, 403, 404, 405, 407 and 410 may be listed, because all other
   * statuses count in any case. Default: none.
   */
  readonly answers?: readonly number[] | undefined;
}

/** The connection of a process to the record of calls. */
export interface Usage {
  /**
   * Does the same as the library's `retire()`, with the policy of a route, and counts the route's
   * calls. A call that the removal breaks is answered only once the record knows that somebody may
   * have called. The first call after a pause waits for that, so that the middleware returns a
   * promise; if the record does not take it, see `unrecorded`. These never wait: an OPTIONS or an
   * upgrade that is not refused, a refusal with 410, and a request of a gate's probe or of
   * `lifecycle check`.
   *
   * @throws {TypeError} If the route is not one of `routes`, or an option is not valid.
   */
  retire<
    Incoming extends NodeRequest = NodeRequest,
    Outgoing extends NodeResponse = NodeResponse,
  >(
    route: string,
    options?:
      & LifecycleOptions<RequestHead, readonly [Incoming, Outgoing]>
      & RouteOptions<readonly [request: Incoming, response: Outgoing]>,
  ): RecordedMiddleware<Incoming, Outgoing>;
  /**
   * Does the same as the library's `withLifecycle()`, with the policy of a route, and counts the
   * route's calls. The same calls wait as in `retire()`, before the handler is called.
   *
   * @throws {TypeError} If the route is not one of `routes`, or an option is not valid.
   */
  withLifecycle<Incoming extends Request, Rest extends unknown[]>(
    handler: (request: Incoming, ...rest: Rest) => Response | Promise<Response>,
    route: string,
    options?:
      & LifecycleOptions<Incoming, Rest>
      & RouteOptions<readonly [request: Incoming, ...rest: Rest]>,
  ): (request: Incoming, ...rest: Rest) => Promise<Response>;
  /**
   * The id of the process's session, as the gate and the log name it. It changes if the session ends
   * while the process runs, for example because the machine slept. It is in the record once the
   * process is registered.
   */
  readonly session: string;
  /**
   * The fault of the record of calls, for a health check; `undefined` if there is none. It is also a
   * fault if a route is not mounted though others are, from a minute on, or if a route that was called
   * in the last 30 days is not among `routes` any more.
   */
  readonly fault: string | undefined;
  /**
   * Records the last calls, and that the process stops. Call it after the last response was sent:
   * whoever calls later is refused with 503, and what is answered later is not on record, which is
   * logged as a fault.
   */
  close(): Promise<void>;
}

const OPTION_NAMES = [
  "routes",
  "password",
  "required",
  "unrecorded",
  "publicUrl",
  "contact",
  "retainDays",
  "log",
];

/**
 * Registers this process in the record of calls, and creates the record if needed.
 *
 * @param database `sqlite:PATH`, for processes on one machine, or `postgres://…`. PostgreSQL needs
 *   the package `pg`.
 * @throws {TypeError} If an option is not valid.
 * @throws {Error} If the URL is wrong, or the package `pg` or Node's SQLite is missing. Unless
 *   `required` is false, also if the process cannot be registered: the record would take none of
 *   its calls. The message has the cause.
 */
export async function openUsage(database: string, options: UsageOptions): Promise<Usage> {
  requireOptions(options);
  const { routes: policies, password, required = true, retainDays = 400 } = options;
  const { publicUrl, contact, unrecorded = "refuse" } = options;
  const log = guarded(options.log ?? lineLog(Date.now));
  const warnings = new Set<string>(); // it may be opened again and again
  const onWarn = (message: string) => {
    if (!warnings.has(message)) log({ event: "warning", message });
    warnings.add(message);
  };
  const place = requireDatabaseUrl(database, "openUsage()");
  const opening = { setting: "openUsage()", runtime: nodeRuntime, onWarn, password };
  let opened: OpenLedger | undefined;
  const ledger = async () => (opened ??= await openLedger(place, opening)).ledger;
  const process = thisProcess();
  const recorder = new Recorder({
    ...{ ledger, policies, process, retainDays, publicUrl, contact, clock: Date.now, log },
    isMountedLater: true,
    mayStartUnregistered: !required,
    mayServeUnrecorded: unrecorded === "serve",
  });
  const phases = new PhaseLog({ policies: () => recorder.policies, clock: Date.now, log });
  try {
    await recorder.start();
  } catch (error) {
    await opened?.close();
    throw withCause(error);
  }
  phases.start();
  if (recorder.isRegistered) log({ event: "session", ...sessionFacts(recorder.session, process) });
  const { meter, intents } = recorder;
  const faults = new FaultLog(log);
  let closing: Promise<void> | undefined;
  let wasLate = false;

  /** Resolves to whether a call to a route may be answered. Never rejects. */
  async function mayAnswer(route: string): Promise<boolean> {
    if (await intents.hold(route)) return true;
    if (unrecorded === "refuse" || closing !== undefined) return false;
    faults.log(UNRECORDED, { route });
    return true;
  }

  /**
   * Returns what applies a route's policy, and records its calls.
   *
   * @param own.identify Returns the client's id.
   */
  function recorded<Incoming extends RequestHead, Rest extends readonly unknown[]>(
    route: string,
    given: LifecycleOptions<Incoming, Rest>,
    { identify, answers }: {
      readonly identify: ((request: Incoming, ...rest: Rest) => unknown) | undefined;
      readonly answers: readonly number[] | undefined;
    },
  ): ApplyRetirement<Incoming, Rest> {
    const policy = Object.hasOwn(policies, route) ? policies[route] : undefined;
    if (policy === undefined) {
      const known = Object.keys(policies).map((name) => `"${name}"`).join(" or ");
      throw new TypeError(
        `route: expected ${known || "none, as `routes` has none"}, got "${route}"`,
      );
    }
    const apply = retirementOf(policy, given, {
      policy: () => recorder.policies[route] ?? policy,
      answers: new Set(answers),
      arrive(fields) {
        if (isProbe(fields)) return undefined;
        intents.arrive(route);
        return intents.isHeld(route) || mayAnswer(route);
      },
      count({ phase, until, status, breaks }, { method, headers }, request, rest, policy) {
        if (closing !== undefined) {
          wasLate = true;
          faults.log(LATE, { route });
          return;
        }
        const moment = { phase, until };
        const counter = meter.counterFor({ route, policy, method, moment, status, breaks });
        const { id, logFailure } = idOf(() => identify?.(request, ...rest));
        counter.count(headers, id);
        logFailure?.(route); // after the count, which no failure may prevent
      },
      leave: () => intents.leave(route),
    });
    recorder.mount(route); // once nothing can be wrong with the options
    return apply;
  }

  /** Returns the id of a client. If that fails, also returns what logs the failure. */
  function idOf(identify: () => unknown): ClientId {
    try {
      return { id: idFrom(identify()) };
    } catch (error) {
      return { id: NO_ID, logFailure: (route) => void faults.log(error, { route }) };
    }
  }

  async function end(): Promise<void> {
    phases.stop();
    await recorder.stop();
    const lost = recorder.unrecorded();
    if (!recorder.isRegistered) log({ event: "error", message: UNREGISTERED });
    const calls = `${lost} ${lost === 1 ? "call" : "calls"}`;
    if (lost > 0) log({ event: "error", message: `${calls} could not be recorded` });
    await opened?.close();
  }

  return {
    retire(route, options = {}) {
      const { client, answers, ...given } = requireRouteOptions(options);
      const identify = client &&
        ((_: RequestHead, ...handled: Parameters<typeof client>) => client(...handled));
      return middlewareOf(recorded(route, given, { identify, answers }));
    },
    withLifecycle(handler, route, options = {}) {
      const { client: identify, answers, ...given } = requireRouteOptions(options);
      return handlerOf(handler, recorded(route, given, { identify, answers }));
    },
    get session() {
      return recorder.session;
    },
    get fault() {
      if (wasLate) return LATE;
      const deleted = recorder.deletedRoutes;
      return recorder.fault ?? (deleted.length > 0 ? deleted.join("; ") : undefined);
    },
    close: () => closing ??= end(),
  };
}

/** The id of a client, if it has one. */
interface ClientId {
  readonly id: string | undefined;
  /** Logs that it could not be learned, if so. */
  readonly logFailure?: (route: string) => void;
}

/** An id that counts as "(other)". */
const NO_ID = "";

/**
 * Returns the id in what the option `client` returned; `undefined` if the client has none.
 *
 * @throws {TypeError} If it is neither a string nor a finite number.
 */
function idFrom(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" || Number.isFinite(value)) return String(value);
  if (isPromise(value)) value.then(undefined, () => {}); // nobody else handles its rejection
  throw new TypeError(mismatch("client", value, "a function that returns a string or number"));
}

const UNRECORDED = "The record of calls does not take this call, which is served all the same";

const UNREGISTERED = "the process ends unregistered: no verdict knows that it served";

const LATE = "calls were answered after close(), and are not on record";

/** Returns a log that never fails, because nobody could catch the error of every call. */
function guarded(log: (event: LogEvent) => unknown): Log {
  return (event) => void attempt("log", () => log(event));
}

/** Returns an error with its cause in its message, which is all that many programs print. */
function withCause(error: unknown): unknown {
  return error instanceof StorageError ? new Error(messageOf(error), { cause: error }) : error;
}

/**
 * Checks the names of a route's options, and the options that the library lacks, because callers may
 * not use TypeScript.
 */
function requireRouteOptions<
  Options extends { readonly client?: unknown; readonly answers?: unknown },
>(options: Options): Options {
  requireNames(options, [...LIFECYCLE_OPTION_NAMES, "client", "answers"]);
  const { client, answers = [] } = options;
  if (client !== undefined && typeof client !== "function") {
    throw new TypeError(mismatch("client", client, "a function"));
  }
  const wrong = Array.isArray(answers)
    ? answers.filter((status) => !FAILED.has(status))
    : [answers];
  if (wrong.length === 0) return options;
  const expected = `a list of statuses that do not count by themselves (${[...FAILED].join(", ")})`;
  throw new TypeError(mismatch("answers", wrong[0], expected));
}

/** Checks the options, likewise. */
function requireOptions(options: UsageOptions): void {
  requireNames(options, OPTION_NAMES);
  const { routes, password, required = true, publicUrl, contact, retainDays = 1 } = options;
  const { unrecorded = "refuse" } = options;
  if (Object(routes) !== routes) {
    throw new TypeError(mismatch("routes", routes, "an object with a policy for each route"));
  }
  requireRouteNames(routes);
  // Throws for any that is not from definePolicy().
  for (const policy of Object.values(routes)) retire(policy);
  if (!Number.isInteger(retainDays) || retainDays < 1) {
    throw new TypeError(mismatch("retainDays", retainDays, "whole days from 1"));
  }
  if (password !== undefined && typeof password !== "function") {
    throw new TypeError("password: expected a function that returns the password");
  }
  if (typeof required !== "boolean") {
    throw new TypeError(mismatch("required", required, "true or false"));
  }
  if (unrecorded !== "refuse" && unrecorded !== "serve") {
    throw new TypeError(mismatch("unrecorded", unrecorded, '"refuse" or "serve"'));
  }
  requireUrl("publicUrl", publicUrl, PUBLIC_URL);
  requireUrl("contact", contact, CONTACT);
}

/** The rule of a URL. */
type UrlRule = Pick<typeof CONTACT, "expected" | "parse">;

const PUBLIC_URL: UrlRule = {
  expected: "an https: or http: URL without user and password",
  parse(text) {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    const isPublic = url !== undefined && /^https?:$/.test(url.protocol) && !hasPassword(text);
    return isPublic ? url : undefined;
  },
};

function requireUrl(name: string, value: unknown, { expected, parse }: UrlRule): void {
  if (value === undefined || typeof value === "string" && parse(value) !== undefined) return;
  const shown = typeof value === "string" && hasPassword(value) ? withoutPassword(value) : value;
  throw new TypeError(mismatch(name, shown, expected));
}

/** Returns whether a text is a URL with a user or password. */
function hasPassword(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username + password !== "";
}

/** Returns this process. `node:os` is not imported, for the reason in `sqlite/node_runtime.ts`. */
function thisProcess(): ProcessIdentity {
  const started = Math.round(performance.timeOrigin);
  return { machine: hostNameOf(), pid: globalThis.process.pid, started };
}

function hostNameOf(): string | undefined {
  try {
    return globalThis.process.getBuiltinModule?.("node:os").hostname(); // missing before Node 20.16
  } catch { // Deno without --allow-sys=hostname
    return undefined;
  }
}
