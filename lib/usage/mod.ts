/**
 * A record of who still calls retired endpoints, in SQLite or PostgreSQL. The command
 * `lifecycle usage` reports on it, and says whether the endpoints can be removed.
 *
 * @module
 */

import type { LifecycleCall, LifecycleOptions, RequestHead } from "../lifecycle/options.ts";
import type { Policy } from "../lifecycle/policy.ts";
import { type NodeRequest, type NodeResponse, retire } from "../lifecycle/retire.ts";
import { withLifecycle } from "../lifecycle/with_lifecycle.ts";
import { lineLog, type LogEvent } from "../log/log.ts";
import { NODE_FILES } from "./node_files.ts";
import { openLedger } from "./open_ledger.ts";
import { Recorder } from "./recorder.ts";

export type { LogEvent } from "../log/log.ts";

/** How a process counts the calls of retired routes. */
export interface UsageOptions {
  /**
   * The policy of each route, from `definePolicy()`, by the route's name, e.g. `/v1`. All processes
   * with the same database count the same routes.
   */
  readonly routes: Readonly<Record<string, Policy>>;
  /** The name of the request field by which you know clients, e.g. one that a gateway sets. */
  readonly clientField?: string | undefined;
  /** Whole days to retain the record, from 1. Default: 400. */
  readonly retainDays?: number | undefined;
  /** Gets what is worth logging. Default: prints each event to standard error as a line of JSON. */
  readonly log?: ((event: LogEvent) => void) | undefined;
}

/** A process's part in the record. */
export interface Usage {
  /**
   * Does the same as `retire()` of the library, with the policy of a route, and counts its calls.
   *
   * @throws {TypeError} If the route is not one of `routes`, or an option is not valid.
   */
  retire<
    Incoming extends NodeRequest = NodeRequest,
    Outgoing extends NodeResponse = NodeResponse,
  >(
    route: string,
    options?: LifecycleOptions<RequestHead, readonly [Incoming, Outgoing]>,
  ): <Result>(request: Incoming, response: Outgoing, next: () => Result) => Result | undefined;
  /**
   * Does the same as `withLifecycle()` of the library, with the policy of a route, and counts its
   * calls.
   *
   * @throws {TypeError} If the route is not one of `routes`, or an option is not valid.
   */
  withLifecycle<Incoming extends Request, Rest extends unknown[]>(
    handler: (request: Incoming, ...rest: Rest) => Response | Promise<Response>,
    route: string,
    options?: LifecycleOptions<Incoming, Rest>,
  ): (request: Incoming, ...rest: Rest) => Promise<Response>;
  /** For a health check: what is wrong with the record of calls; `undefined` for nothing. */
  readonly fault: string | undefined;
  /**
   * Records the last calls, and that the process stops. Call it once the last response was sent:
   * later calls are not recorded. Without it, the verdict is unknown, as after a crash.
   */
  close(): Promise<void>;
}

const OPTIONS = ["routes", "clientField", "retainDays", "log"];

/**
 * Registers this process in the record of calls, which it creates if needed.
 *
 * @param database `sqlite:PATH`, for processes on one machine, or `postgres://…`, which needs the
 *   package `pg`.
 * @throws {TypeError} If an option is not valid.
 * @throws {Error} If the database cannot be used: an application that cannot count does not start.
 */
export async function openUsage(database: string, options: UsageOptions): Promise<Usage> {
  requireOptions(options);
  const { routes: policies, clientField, retainDays = 400, log = lineLog(Date.now) } = options;
  const { ledger, close } = await openLedger(database, {
    setting: "openUsage()",
    files: NODE_FILES,
  });
  const recorder = new Recorder({
    ledger,
    policies,
    retainDays,
    clientField,
    clock: Date.now,
    log,
  });
  try {
    await recorder.start();
  } catch (error) {
    await close();
    throw error;
  }
  const { meter } = recorder;
  let isClosed = false;

  /** Adds counting to the options of a route. */
  function counted<Incoming extends RequestHead, Rest extends readonly unknown[]>(
    route: string,
    given: LifecycleOptions<Incoming, Rest> = {},
  ): LifecycleOptions<Incoming, Rest> {
    const policy = policyOf(policies, route);
    return {
      ...given,
      onCount(call, request, ...rest) {
        if (isClosed) {
          const message = `A call of ${route} was answered after close(), and is not on record`;
          log({ event: "error", message });
        }
        const moment = { phase: call.phase, until: brownoutEndOf(policy, call) };
        const impact = call.breaks ? "breaking" : "none";
        const { method, headers } = request;
        meter.counterOf({ route, method, moment, status: call.status, impact }).count(headers);
        given.onCount?.(call, request, ...rest);
      },
    };
  }

  return {
    retire: (route, given) => retire(policyOf(policies, route), counted(route, given)),
    withLifecycle: (handler, route, given) =>
      withLifecycle(handler, policyOf(policies, route), counted(route, given)),
    get fault() {
      return meter.fault;
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      await recorder.stop();
      const lost = recorder.unrecorded();
      if (lost > 0) log({ event: "error", message: `${lost} calls could not be recorded` });
      await close();
    },
  };
}

/** Returns when the brownout ends in which a call was refused; 0 in any other phase. */
function brownoutEndOf({ brownouts }: Policy, { phase }: LifecycleCall): number {
  if (phase !== "brownout") return 0;
  return brownouts.findLast(({ start }) => start <= Date.now())?.end ?? 0;
}

function policyOf(policies: UsageOptions["routes"], route: string): Policy {
  const policy = Object.hasOwn(policies, route) ? policies[route] : undefined;
  if (policy !== undefined) return policy;
  const known = Object.keys(policies).map((name) => `"${name}"`).join(" or ");
  throw new TypeError(`route: expected ${known}, got "${route}"`);
}

function requireOptions({ routes, clientField, retainDays, log, ...others }: UsageOptions): void {
  const unknown = Object.keys(others)[0];
  if (unknown !== undefined) {
    throw new TypeError(`${unknown}: expected one of ${OPTIONS.join(", ")}`);
  }
  const entries = Object.entries(routes ?? {});
  if (entries.length === 0) throw new TypeError("routes: expected a policy for at least one route");
  for (const [route, policy] of entries) {
    if (!Number.isFinite(policy?.deprecatedAt)) {
      throw new TypeError(`routes: expected the result of definePolicy() for "${route}"`);
    }
  }
  const isDays = retainDays === undefined || Number.isInteger(retainDays) && retainDays >= 1;
  if (!isDays) throw new TypeError(`retainDays: expected whole days from 1, got ${retainDays}`);
  if (clientField !== undefined && !/^[\w!#$%&'*+.^`|~-]+$/.test(clientField)) {
    throw new TypeError(`clientField: expected the name of a field, got "${clientField}"`);
  }
  if (log !== undefined && typeof log !== "function") {
    throw new TypeError(`log: expected a function, got ${typeof log}`);
  }
}
