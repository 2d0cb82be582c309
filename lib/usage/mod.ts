/**
 * A record of who still calls retired endpoints, in SQLite or PostgreSQL. The command
 * `lifecycle usage` reports on it, and says whether the endpoints can be removed.
 *
 * @module
 */

import { StorageError } from "../database/errors.ts";
import { mismatch, requireNames } from "../lifecycle/mismatch.ts";
import type { LifecycleOptions, RequestHead } from "../lifecycle/options.ts";
import type { Policy } from "../lifecycle/policy.ts";
import {
  type Middleware,
  type NodeRequest,
  type NodeResponse,
  retire,
} from "../lifecycle/retire.ts";
import { withLifecycle } from "../lifecycle/with_lifecycle.ts";
import { FaultLog, lineLog, type Log, type LogEvent } from "../log/log.ts";
import { CLIENT_FIELD, withoutValue } from "./client_names.ts";
import { thisProcess } from "./node_process.ts";
import { nodeRuntime } from "./node_runtime.ts";
import { openLedger } from "./open_ledger.ts";
import { Recorder } from "./recorder.ts";
import { requireRouteNames } from "./records.ts";
import { sessionFacts } from "./session_name.ts";

export type { LogEvent } from "../log/log.ts";

/** The options of {@linkcode openUsage}. */
export interface UsageOptions {
  /**
   * The policy of each route, from `definePolicy()`, by the route's name, e.g. `/v1`. Names are
   * well-formed Unicode without control characters. All processes with the same database count the
   * same routes.
   */
  readonly routes: Readonly<Record<string, Policy>>;
  /** The name of the request field that identifies clients, e.g. one that a gateway sets. */
  readonly clientField?: string | undefined;
  /** The number of whole days to retain, at least 1. Default: 400. */
  readonly retainDays?: number | undefined;
  /** Logs an event. Default: prints it to standard error as a line of JSON. */
  readonly log?: ((event: LogEvent) => void) | undefined;
}

/** The connection of a process to the record of calls. */
export interface Usage {
  /**
   * Does the same as the library's `retire()`, with the policy of a route, and counts the route's
   * calls.
   *
   * @throws {TypeError} If the route is not one of `routes`, or an option is not valid.
   */
  retire<
    Incoming extends NodeRequest = NodeRequest,
    Outgoing extends NodeResponse = NodeResponse,
  >(
    route: string,
    options?: LifecycleOptions<RequestHead, readonly [Incoming, Outgoing]>,
  ): Middleware<Incoming, Outgoing>;
  /**
   * Does the same as the library's `withLifecycle()`, with the policy of a route, and counts the
   * route's calls.
   *
   * @throws {TypeError} If the route is not one of `routes`, or an option is not valid.
   */
  withLifecycle<Incoming extends Request, Rest extends unknown[]>(
    handler: (request: Incoming, ...rest: Rest) => Response | Promise<Response>,
    route: string,
    options?: LifecycleOptions<Incoming, Rest>,
  ): (request: Incoming, ...rest: Rest) => Promise<Response>;
  /**
   * The id of the process's session, as the gate and the log name it. It changes if the session ends
   * while the process runs, for example because the machine slept.
   */
  readonly session: string;
  /** The fault of the record of calls, for a health check; `undefined` if there is none. */
  readonly fault: string | undefined;
  /**
   * Records the last calls, and that the process stops. Call it after the last response was sent:
   * later calls are not recorded, and are logged as a fault. If you never call it, the verdict is
   * unknown, as after a crash.
   */
  close(): Promise<void>;
}

const OPTION_NAMES = ["routes", "clientField", "retainDays", "log"];

/**
 * Registers this process in the record of calls, and creates the record if needed.
 *
 * @param database `sqlite:PATH`, for processes on one machine, or `postgres://…`. PostgreSQL needs
 *   the package `pg`.
 * @throws {TypeError} If an option is not valid.
 * @throws {Error} If the process cannot be registered: its calls would not be counted.
 */
export async function openUsage(database: string, options: UsageOptions): Promise<Usage> {
  requireOptions(options);
  const { routes: policies, clientField, retainDays = 400 } = options;
  const log = guarded(options.log ?? lineLog(Date.now));
  const onWarn = (message: string) => log({ event: "warning", message });
  const opening = { setting: "openUsage()", runtime: nodeRuntime, onWarn };
  const { ledger, close } = await openLedger(database, opening);
  const process = thisProcess();
  const settings = { ledger, policies, process, retainDays, clientField, clock: Date.now, log };
  const recorder = new Recorder(settings);
  try {
    await recorder.start();
  } catch (error) {
    await close();
    throw error;
  }
  log({ event: "session", ...sessionFacts(recorder.session, process) });
  const { meter } = recorder;
  const faults = new FaultLog(log);
  let closing: Promise<void> | undefined;
  let wasLate = false;

  /** Returns a route's policy, and its options with counting added. */
  function counted<Incoming extends RequestHead, Rest extends readonly unknown[]>(
    route: string,
    given: LifecycleOptions<Incoming, Rest> = {},
  ): [policy: Policy, options: LifecycleOptions<Incoming, Rest>] {
    const policy = Object.hasOwn(policies, route) ? policies[route] : undefined;
    if (policy === undefined) {
      const known = Object.keys(policies).map((name) => `"${name}"`).join(" or ");
      throw new TypeError(`route: expected ${known}, got "${route}"`);
    }
    const onCount: typeof given.onCount = (call, request, ...rest) => {
      if (closing === undefined) {
        const { phase, status } = call;
        const until = phase === "brownout" ? brownoutEnd(policy, given.clock) : 0;
        const impact = call.breaks ? "breaking" : "none";
        const { method, headers } = request;
        meter.counterOf({ route, method, moment: { phase, until }, status, impact }).count(headers);
      } else {
        wasLate = true;
        faults.report(new StorageError("usage", LATE), { route });
      }
      given.onCount?.(call, request, ...rest);
    };
    return [policy, { ...given, onCount }];
  }

  async function end(): Promise<void> {
    await recorder.stop();
    const lost = recorder.unrecorded();
    if (lost > 0) log({ event: "error", message: `${lost} calls could not be recorded` });
    await close();
  }

  return {
    retire: (route, given) => retire(...counted(route, given)),
    withLifecycle: (handler, route, given) => withLifecycle(handler, ...counted(route, given)),
    get session() {
      return recorder.session;
    },
    get fault() {
      return wasLate ? LATE : meter.fault;
    },
    close: () => closing ??= end(),
  };
}

/**
 * Returns the end of the brownout in which a call that has just ended was made: the last one to
 * have started. If the route's clock fails, the system clock counts, as in the library.
 */
function brownoutEnd({ brownouts }: Policy, clock = Date.now): number {
  let now = Date.now();
  try {
    now = clock();
  } catch { // logged by the library
  }
  return brownouts.findLast(({ start }) => start <= now)?.end ?? 0;
}

const LATE = "calls were answered after close(), and are not on record";

/** Returns a log that never throws, because nobody could catch the error of every call. */
function guarded(log: Log): Log {
  return (event) => {
    try {
      log(event);
    } catch (error) {
      console.error("The option log failed:", error);
    }
  };
}

/** Checks the options, because callers may not use TypeScript. */
function requireOptions(options: UsageOptions): void {
  requireNames(options, OPTION_NAMES);
  const { routes, clientField, retainDays = 1 } = options;
  const policies = Object.values(routes ?? {});
  if (policies.length === 0) throw new TypeError("routes: expected a policy for a route");
  requireRouteNames(routes);
  for (const policy of policies) retire(policy); // throws for any that is not from definePolicy()
  if (!Number.isInteger(retainDays) || retainDays < 1) {
    throw new TypeError(mismatch("retainDays", retainDays, "whole days from 1"));
  }
  if (clientField !== undefined && !CLIENT_FIELD.test(clientField)) {
    const expected = "the name of a request field that names the client, and is no credential";
    throw new TypeError(mismatch("clientField", withoutValue(String(clientField)), expected));
  }
}
