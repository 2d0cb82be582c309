/** The life of a server process, from startup to exit. */

import { describePolicy, type placesOf } from "./start_line.ts";
import { type Config, ConfigError, SAMPLES_DEPRECATED_AT } from "./config.ts";
import { messageOf } from "../input/printable.ts";
import { fulfilledWithin } from "../async/deadline.ts";
import { type Listen, Listener, type Shutdown } from "./listener.ts";
import type { Log } from "../log/log.ts";
import { onStopSignal } from "./stop_signal.ts";
import { StorageError } from "../storage/errors.ts";
import type { RoutePolicies } from "../usage/records.ts";

/**
 * Matches releases that send `content-length: 0` on every HEAD, whatever the handler sets: 2.8.3 to
 * 2.9.1. denoland/deno#35728 fixed it.
 */
const HEAD_LENGTH_BUG = /^2\.(?:8\.(?:[3-9]|\d\d)|9\.[01](?!\d))/;

/** Thrown when the server cannot start. Its message is for the operator. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/**
 * Ensures that this release of Deno sends the Content-Length that is set on a HEAD.
 *
 * @param version e.g. `2.9.6`.
 * @throws {StartError} On a release that sends a wrong Content-Length on every HEAD.
 */
export function requireHonestHead(version: string): void {
  if (!HEAD_LENGTH_BUG.test(version)) return;
  throw new StartError(
    `Deno ${version} answers every HEAD with "content-length: 0", as do all releases from ` +
      "2.8.3 to 2.9.1; run 2.9.2 or later",
  );
}

interface UsageRecorder {
  /** The id of the process's session in the ledger; it can change. */
  readonly session: string;
  start(): Promise<void>;
  /** Flushes the counts so far. Never rejects. */
  flush(): Promise<void>;
  /** Returns the number of calls that are not on record. */
  unrecorded(): number;
}

/** An assembled server, ready to register and to listen. */
export interface App extends
  Pick<
    Config,
    | "host"
    | "port"
    | "reusePort"
    | "publicUrl"
    | "isOnDeploy"
    | "isDeprecationUnset"
    | "isTracingOn"
    | "ineffective"
  > {
  /** The policy of each deprecated route, by its path. */
  readonly policies: RoutePolicies;
  /** Where catalogue and content are. */
  readonly places: ReturnType<typeof placesOf>;
  readonly listen: Listen;
  readonly log: Log;
  readonly recorder: UsageRecorder;
  /** The paths of the samples, to print at startup. */
  readonly samples: readonly string[];
  /** Releases the app's resources, after the last request. */
  readonly close: () => Promise<void>;
}

const PAST =
  "The sunset has passed: these paths now answer as removed; delete their routes when ready";
const UNSET = "DEPRECATED_AT is not set, so the old paths announce " +
  `${SAMPLES_DEPRECATED_AT}, the date of the samples`;

const TRACED = "Deno exports traces, with the tokens and queries of all requests: set " +
  "OTEL_DENO_TRACING=false to export metrics alone";

/**
 * Milliseconds that requests in flight have after a signal, and that closing may take after that.
 * Deno Deploy kills a process five seconds after the signal.
 */
const [GRACE_MS, CLOSE_TIMEOUT_MS] = [10_000, 5_000];
const [DEPLOY_GRACE_MS, DEPLOY_CLOSE_TIMEOUT_MS] = [3_000, 1_500];

/**
 * Assembles an app, registers it, and serves it until a signal to stop. Then it stops listening,
 * flushes the counts, finishes the requests in flight as far as time allows, and exits. At a second
 * signal it exits at once. If the start fails, it prints the reason and exits.
 *
 * @param assemble Receives the state of the shutdown, which changes while the app runs.
 */
export async function runServer(
  assemble: (shutdown: Shutdown) => Promise<App>,
): Promise<void> {
  const stopping = new AbortController();
  const stopped = new Promise((resolve) =>
    stopping.signal.addEventListener("abort", resolve, { once: true })
  );
  try {
    const shutdown: Shutdown = { stopping: stopping.signal, isCounted: false };
    const app = await assemble(shutdown);
    const { log, recorder } = app;
    const [grace, closing] = app.isOnDeploy
      ? [DEPLOY_GRACE_MS, DEPLOY_CLOSE_TIMEOUT_MS]
      : [GRACE_MS, CLOSE_TIMEOUT_MS];
    onStopSignal(() => stopping.abort()); // once registered, its end must be recorded
    await recorder.start();
    const listener = await listen(app, (address) => logStart(app, address));
    await stopped;
    await fulfilledWithin(grace, Promise.all([listener.shutdown(), recorder.flush()]));
    shutdown.isCounted = true;
    await fulfilledWithin(closing, app.close());
    const lost = recorder.unrecorded();
    log({ event: "stop", session: recorder.session, ...lost > 0 ? { lost } : {} });
  } catch (error) {
    refuse(error);
  }
  // With telemetry on, Deno 2.9.6 may hang here: it waits for an export that waits for this thread.
  // (No issue of Deno's was found; denoland/deno#33157 is another hang there.)
  Deno.exit(0);
}

function logStart(app: App, { hostname, port }: Deno.NetAddr): void {
  const { log, policies, places, recorder: { session } } = app;
  const now = Date.now();
  const { deno } = Deno.version;
  const { state } = Deno.permissions.querySync({ name: "sys", kind: "hostname" });
  const machine = state === "granted" ? Deno.hostname() : undefined;
  const routes = Object.fromEntries(
    Object.entries(policies).map(([path, policy]) => [path, describePolicy(policy, now)]),
  );
  log({ event: "start", session, machine, hostname, port, deno, routes, ...places });
  const past = Object.keys(routes).filter((path) => routes[path]?.phase === "removed");
  if (past.length > 0) log({ event: "warning", message: PAST, routes: past });
  const hasRoutes = Object.keys(routes).length > 0;
  if (app.isDeprecationUnset && hasRoutes) log({ event: "warning", message: UNSET });
  if (app.isTracingOn) log({ event: "warning", message: TRACED });
  if (app.ineffective.length > 0) {
    const message = `These have no effect, because no such route is deprecated: ${
      app.ineffective.join(", ")
    }`;
    log({ event: "warning", message });
  }
  const origin = app.publicUrl ?? `http://localhost:${port}`;
  for (const path of app.samples) console.log(`curl -I ${origin}${path}`);
}

async function listen(
  app: App,
  onListen: (address: Deno.NetAddr) => void,
): Promise<Listener> {
  const { host, port, reusePort } = app;
  try {
    // Without --unstable-net, reusePort makes Deno 2.9.6 end the process (no issue was found).
    // Deno.listenDatagram exists only with that flag.
    if (!reusePort || "listenDatagram" in Deno) return new Listener({ ...app, onListen });
    throw new StartError("REUSE_PORT=true needs Deno's flag --unstable-net before main.ts");
  } catch (error) {
    await fulfilledWithin(CLOSE_TIMEOUT_MS, app.close()); // or the gate would wait for this server
    if (error instanceof StartError) throw error;
    const reason = REASONS.find(([type]) => error instanceof type)?.[1] ?? (error as Error).message;
    throw new StartError(`Cannot listen on ${host}:${port}: ${reason}`);
  }
}

/** The reasons for a failure to listen, each with a remedy. */
const REASONS: readonly (readonly [new (message: string) => Error, string])[] = [
  [
    Deno.errors.AddrInUse,
    "address already in use (choose another PORT, or set REUSE_PORT=true for both processes)",
  ],
  [Deno.errors.AddrNotAvailable, "address not available on this machine (choose another HOST)"],
  [Deno.errors.PermissionDenied, "permission denied (choose a PORT of 1024 or higher)"],
];

/** Prints why the start failed, and exits. A bug is rethrown with its stack. */
function refuse(error: unknown): never {
  const expected = [StartError, ConfigError, StorageError];
  if (!expected.some((type) => error instanceof type)) throw error;
  console.error(`media-head cannot start: ${messageOf(error as Error)}`);
  Deno.exit(1);
}
