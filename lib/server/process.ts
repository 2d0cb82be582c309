/**
 * A server process, from its start to its end.
 */

import { type Config, ConfigError } from "./config.ts";
import { fulfilledWithin } from "../storage/deadline.ts";
import type { Handler } from "./responder.ts";
import { Listener } from "./listener.ts";
import type { Log } from "./log.ts";
import { onStopSignal } from "./stop_signal.ts";
import { StorageError } from "../storage/storage.ts";

/** Releases that send `content-length: 0` on every HEAD, whatever the handler sets. */
const HEAD_LENGTH_BUG = { from: [2, 8, 3], to: [2, 9, 1] };

/** A reason not to start, in words for the operator. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/**
 * Makes sure that this Deno can send what the handler says.
 *
 * @param version e.g. `2.9.6`.
 * @throws {StartError} On a release that falsifies the length of every HEAD.
 */
export function requireHonestHead(version: string): void {
  const release = version.split(/[.+-]/).slice(0, 3).map(Number);
  const { from, to } = HEAD_LENGTH_BUG;
  if (compare(release, from) < 0 || compare(release, to) > 0) return;
  throw new StartError(
    `Deno ${version} answers every HEAD with "content-length: 0", as do all releases from ` +
      `${from.join(".")} to ${to.join(".")}; run 2.9.2 or later`,
  );
}

function compare(a: number[], b: number[]): number {
  const at = a.findIndex((part, index) => part !== b[index]);
  return at < 0 ? 0 : (a[at] as number) - (b[at] as number);
}

/** A server put together and ready to listen. */
export interface App {
  readonly host: string;
  readonly port: number;
  /** Whether other processes may listen on the same port. */
  readonly reusePort: boolean;
  readonly content: Config["content"];
  readonly isOnDeploy: boolean;
  readonly handle: Handler;
  readonly log: Log;
  /** Paths that a newcomer can try. */
  readonly samples: readonly string[];
  /** Saves what was counted so far. Never rejects. */
  readonly flush: () => Promise<void>;
  /** Lets go of what the app holds, once the last request is finished. */
  readonly close: () => Promise<void>;
}

/**
 * Milliseconds that requests in flight have to finish after a signal, and that closing may take
 * after that, should storage not answer. Deno Deploy kills a process five seconds after the signal.
 */
const [GRACE, CLOSING] = [10_000, 5_000];
const [DEPLOY_GRACE, DEPLOY_CLOSING] = [3_000, 1_500];

/**
 * Puts an app together and serves it, until SIGINT or SIGTERM; then it stops listening, saves the
 * counts, finishes the requests in flight as far as time allows, and ends the process.
 * A second signal ends the process at once. So does a reason not to start, which it prints.
 */
export async function runServer(assemble: () => Promise<App>): Promise<void> {
  const stop = Promise.withResolvers<void>();
  try {
    const app = await assemble();
    const { log, samples, content, isOnDeploy, flush, close } = app;
    const [grace, closing] = isOnDeploy ? [DEPLOY_GRACE, DEPLOY_CLOSING] : [GRACE, CLOSING];
    onStopSignal(() => stop.resolve()); // before anybody can know that it listens
    const listener = listen(app, ({ hostname, port }) => {
      const limit = content.kind === "none" ? { content: "none: public URLs only" } : {};
      log({ event: "start", hostname, port, deno: Deno.version.deno, ...limit });
      for (const path of samples) console.log(`curl -I http://localhost:${port}${path}`);
    });
    await stop.promise;
    await fulfilledWithin(grace, Promise.all([listener.shutdown(), flush()]));
    const { unfinished } = listener;
    await fulfilledWithin(closing, close());
    log({ event: "stop", unfinished });
  } catch (error) {
    refuse(error);
  }
  Deno.exit(0); // with telemetry on, it waits for the collector, without a limit (Deno 2.9.6)
}

function listen(app: App, onListen: (address: Deno.NetAddr) => void): Listener {
  // Deno 2.9.6 ends the process without this flag; what else it enables tells that it is there.
  if (app.reusePort && !("listenDatagram" in Deno)) {
    throw new StartError("REUSE_PORT=true needs Deno's flag --unstable-net before main.ts");
  }
  try {
    return new Listener({ ...app, onListen });
  } catch (error) {
    const { host, port } = app;
    const reason = REASONS.find(([type]) => error instanceof type)?.[1] ?? (error as Error).message;
    throw new StartError(`Cannot listen on ${host}:${port}: ${reason}`, { cause: error });
  }
}

/** What the system says of an address that cannot be had, in words for the operator. */
const REASONS: readonly (readonly [new (message: string) => Error, string])[] = [
  [
    Deno.errors.AddrInUse,
    "another process has it (choose another PORT, or REUSE_PORT=true for both)",
  ],
  [Deno.errors.AddrNotAvailable, "this machine has no such address (choose another HOST)"],
  [Deno.errors.PermissionDenied, "it is not allowed (choose a PORT from 1024 on)"],
];

/** A start that cannot succeed ends with a line for each reason; a bug keeps its stack. */
function refuse(error: unknown): never {
  const isExpected = error instanceof StartError || error instanceof ConfigError ||
    error instanceof StorageError;
  if (!isExpected) throw error;
  const cause = error instanceof StorageError && error.cause instanceof Error
    ? ` (${error.cause.message})`
    : "";
  console.error(`media-head does not start: ${error.message}${cause}`);
  Deno.exit(1);
}
