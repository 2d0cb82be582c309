/** The life of a server process, from startup to exit. */

import { fulfilledWithin } from "../async/deadline.ts";
import { StorageError } from "../errors/storage_error.ts";
import type { Log } from "../log/log.ts";
import type { Recorder } from "../usage/record/recorder.ts";
import { type Config, ConfigError } from "./config.ts";
import { type Listen, Listener } from "./listener.ts";
import { onStopSignal } from "./stop_signal.ts";
import { messageOf } from "../input/printable.ts";

/** Thrown when the server cannot start. Its message is for the operator. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/** An assembled server, ready to register and to listen. */
export interface App extends Pick<Config, "host" | "port" | "reusePort" | "isOnDeploy"> {
  readonly listen: Listen;
  /** Logs the start, once the server listens on an address. */
  readonly onListen: (address: Deno.NetAddr) => void;
  readonly log: Log;
  readonly recorder: Pick<Recorder, "session" | "start" | "unrecorded">;
  /** Releases the app's resources, after the last request. */
  readonly close: () => Promise<void>;
}

/**
 * How long requests in flight may take after a signal to stop, and then closing, in milliseconds.
 */
const TIME_LIMITS = { requestsMs: 10_000, closeMs: 5_000 };

/** The same on Deno Deploy, where a process is killed five seconds after the signal. */
export const DEPLOY_TIME_LIMITS = { requestsMs: 3_000, closeMs: 1_500 };

/**
 * Assembles an app, registers it, and serves it until a signal to stop. Then stops listening, finishes
 * the requests in flight as far as time allows, records the last counts, and exits. Exits at
 * once at a second signal. If the start fails, prints the reason and exits.
 *
 * @param assemble Assembles the app. The signal aborts as soon as the process is stopping.
 */
export async function runServer(
  assemble: (stopping: AbortSignal) => Promise<App>,
): Promise<void> {
  const stopping = new AbortController();
  const stopped = new Promise((resolve) =>
    stopping.signal.addEventListener("abort", resolve, { once: true })
  );
  try {
    const app = await assemble(stopping.signal);
    const { log, recorder } = app;
    const { requestsMs, closeMs } = app.isOnDeploy ? DEPLOY_TIME_LIMITS : TIME_LIMITS;
    onStopSignal(() => stopping.abort()); // once a session is registered, its end must be recorded
    await recorder.start();
    const listener = await listen(app);
    await stopped;
    await fulfilledWithin(requestsMs, listener.shutdown());
    await fulfilledWithin(closeMs, app.close());
    const lost = recorder.unrecorded();
    log({ event: "stop", session: recorder.session, ...lost > 0 ? { lost } : {} });
  } catch (error) {
    refuse(error);
  }
  // With telemetry on, Deno 2.9.6 may hang here: it waits for an export that waits for this thread.
  // (No issue of Deno's was found; denoland/deno#33157 is another hang there.)
  Deno.exit(0);
}

/** Returns the address to listen on, as permissions name it. */
export function listenAddress({ host, port }: Pick<Config, "host" | "port">): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Ensures that Deno's permissions and flags allow listening.
 *
 * @throws {StartError} If they do not.
 */
export function requireListenAccess(
  { host, port, reusePort }: Pick<Config, "host" | "port" | "reusePort">,
): void {
  const address = listenAddress({ host, port });
  if (Deno.permissions.querySync({ name: "net", host: address }).state !== "granted") {
    throw new StartError(
      `Deno's permissions do not allow listening on ${address}; add it to --allow-net`,
    );
  }
  // Without --unstable-net, reusePort makes Deno 2.9.6 end the process (no issue was found).
  // Deno.listenDatagram exists only with that flag.
  if (!reusePort || "listenDatagram" in Deno) return;
  throw new StartError("REUSE_PORT=true needs Deno's flag --unstable-net before main.ts");
}

/** @throws {StartError} If it cannot listen. */
async function listen(app: App): Promise<Listener> {
  try {
    return new Listener(app);
  } catch (error) {
    // Otherwise verdicts would name it as a process that fell silent.
    await fulfilledWithin(TIME_LIMITS.closeMs, app.close());
    const { host, port, reusePort } = app;
    const remedy = error instanceof Deno.errors.AddrInUse && !reusePort
      ? "choose another PORT, or set REUSE_PORT=true in every process that shares this one"
      : "choose another HOST or PORT";
    throw new StartError(
      `Cannot listen on ${host}:${port}: ${(error as Error).message}; ${remedy}`,
    );
  }
}

/** Prints why the start failed, and exits. A bug is rethrown with its stack. */
function refuse(error: unknown): never {
  console.error(`media-head cannot start: ${reasonOf(error)}`);
  Deno.exit(1);
}

/** Returns why the start failed, for the operator. Rethrows a bug. */
export function reasonOf(error: unknown): string {
  const expected = [StartError, ConfigError, StorageError];
  if (!expected.some((type) => error instanceof type)) throw error;
  return messageOf(error as Error);
}
