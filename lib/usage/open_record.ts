/** The connection of a process to the record of calls. */

import { requireDatabaseUrl } from "../database/place.ts";
import { nodeRuntime } from "../database/sqlite/node_runtime.ts";
import type { Policy, RoutePolicies } from "../lifecycle/policy.ts";
import { attempt, type LifecycleOptions, type RequestHead } from "../lifecycle/serving/options.ts";
import {
  type Middleware,
  middlewareOf,
  type NodeRequest,
  type NodeResponse,
} from "../lifecycle/serving/retire.ts";
import { retirementOf } from "../lifecycle/serving/retirement.ts";
import { handlerOf } from "../lifecycle/serving/with_lifecycle.ts";
import { FaultLog, lineLog, type Log, type LogEvent } from "../log/log.ts";
import { PhaseLog } from "../log/phases.ts";
import { openLedger } from "./record/open_ledger.ts";
import { Recorder } from "./record/recorder.ts";
import { type ProcessIdentity, sessionFacts } from "./record/records.ts";
import { callRecord } from "./call_record.ts";
import {
  requireOptions,
  requireRouteOptions,
  type RouteOptions,
  type UsageOptions,
} from "./options.ts";

/** The connection of a process to the record of calls. */
export interface Usage {
  /**
   * Does the same as the library's `retire()`, with the policy of a route, and counts the route's
   * calls. No call waits for the record, or fails with it.
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
  ): Middleware<Incoming, Outgoing>;
  /**
   * Does the same as the library's `withLifecycle()`, with the policy of a route, and counts the
   * route's calls. No call waits for the record, or fails with it.
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
   * The id of the process's session, as the log and the JSON of reports have it. It changes if another
   * session begins while the process runs, for example because the machine slept. The record has it
   * once the process is registered.
   */
  readonly session: string;
  /**
   * What is wrong with the record of calls, for a health check; `undefined` if nothing is. While the
   * database cannot be reached, calls are served all the same, and counted in memory. It is also a
   * fault if a route is not mounted a minute after another one was, or if a route that was called in
   * the last 30 days is no longer among `routes`.
   */
  readonly fault: string | undefined;
  /**
   * Waits until every call is answered, then records the last ones, and that the process has stopped.
   * Takes ten seconds at most; what is answered later is still recorded, as long as the process goes
   * on. Call it once the server has stopped accepting requests. Without it, verdicts name the process,
   * and nothing else happens.
   */
  close(): Promise<void>;
}

/** The connection of a process to its record, and what else it knows. */
interface OpenRecord {
  readonly usage: Usage;
  /** Returns the policies of the routes at present, under the holds that the process knows. */
  readonly policies: () => RoutePolicies;
}

/**
 * Opens the record of calls: see `openUsage()`.
 *
 * @param setting What names the database, for messages.
 * @throws {StorageError} If the record cannot be used for a reason that waiting does not mend.
 */
export async function openRecord(
  database: string,
  setting: string,
  options: UsageOptions,
): Promise<OpenRecord> {
  requireOptions(options);
  const { routes: policies, publicUrl, contact, retainDays = 400, onDemand = false } = options;
  const log = guarded(options.log ?? lineLog(Date.now));
  const process = thisProcess();
  const recorder = new Recorder({
    ...{ policies, process, onDemand, retainDays, publicUrl, contact, clock: Date.now, log },
    open: opening(database, setting, options, log),
    isMountedLater: true,
  });
  const phases = new PhaseLog({ policies: () => recorder.policies, clock: Date.now, log });
  await recorder.start();
  phases.start();
  if (recorder.isRegistered) log({ event: "session", ...sessionFacts(recorder.session, process) });
  let closing: Promise<void> | undefined;
  const close = async () => {
    phases.stop();
    await recorder.close();
    const lost = recorder.unrecorded();
    if (!recorder.isRegistered) log({ event: "error", message: UNREGISTERED });
    const calls = `${lost} ${lost === 1 ? "call" : "calls"}`;
    if (lost > 0) log({ event: "error", message: `${calls} could not be recorded yet` });
  };
  const usage: Usage = {
    ...retiring(policies, recorder, new FaultLog(log)),
    get session() {
      return recorder.session;
    },
    get fault() {
      const deleted = recorder.deletedRoutes;
      return recorder.fault ?? (deleted.length > 0 ? deleted.join("; ") : undefined);
    },
    close: () => closing ??= close(),
  };
  return { usage, policies: () => recorder.policies };
}

/** Returns what opens the ledger. It warns of the URL once, though it may be opened again and again. */
function opening(database: string, setting: string, { password }: UsageOptions, log: Log) {
  const warnings = new Set<string>();
  const onWarn = (message: string) => {
    if (!warnings.has(message)) log({ event: "warning", message });
    warnings.add(message);
  };
  const place = requireDatabaseUrl(database, setting);
  return () => openLedger(place, { setting, runtime: nodeRuntime, onWarn, password });
}

/** Returns the functions that retire a route, and count its calls. */
function retiring(
  policies: UsageOptions["routes"],
  recorder: Recorder,
  faults: FaultLog,
): Pick<Usage, "retire" | "withLifecycle"> {
  const policyOf = (route: string): Policy => {
    const policy = Object.hasOwn(policies, route) ? policies[route] : undefined;
    if (policy !== undefined) return policy;
    const known = Object.keys(policies).map((name) => `"${name}"`).join(" or ");
    throw new TypeError(
      `route: expected ${known || "none, as `routes` has none"}, got "${route}"`,
    );
  };
  return {
    retire(route, options = {}) {
      const policy = policyOf(route);
      const { client, answers, ...given } = requireRouteOptions(options);
      const identify = client &&
        ((_: RequestHead, ...handled: Parameters<typeof client>) => client(...handled));
      const record = callRecord(route, policy, { recorder, faults, identify, answers });
      const apply = retirementOf(policy, given, record);
      recorder.mount(route); // once nothing can be wrong with the options
      return middlewareOf(apply);
    },
    withLifecycle(handler, route, options = {}) {
      const policy = policyOf(route);
      const { client: identify, answers, ...given } = requireRouteOptions(options);
      const record = callRecord(route, policy, { recorder, faults, identify, answers });
      const apply = retirementOf(policy, given, record);
      recorder.mount(route);
      return handlerOf(handler, apply);
    },
  };
}

const UNREGISTERED = "the process stops, and could not be registered yet: no verdict knows of it";

/** Returns a log that never fails, because nobody could catch the error of every call. */
function guarded(log: (event: LogEvent) => unknown): Log {
  return (event) => void attempt("log", () => log(event));
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
