/**
 * A listening server and its end.
 */

import type { Handler } from "./http/responder.ts";
import type { Log } from "./log.ts";
import { ConfigError } from "./config.ts";
import { StorageError } from "./storage/storage.ts";

/** Releases that send `content-length: 0` on every HEAD, whatever the handler sets. */
const HEAD_LENGTH_BUG = { from: [2, 8, 3], to: [2, 9, 1] };

/** A reason not to start, in words for the operator. */
export class RefusalError extends Error {
  override readonly name = "RefusalError";
}

/**
 * Makes sure that this Deno can send what the handler says.
 *
 * @param version e.g. `2.9.6`.
 * @throws {RefusalError} On a release that falsifies the length of every HEAD.
 */
export function requireHonestHead(version: string): void {
  const release = version.split(/[.+-]/).slice(0, 3).map(Number);
  const { from, to } = HEAD_LENGTH_BUG;
  if (compare(release, from) < 0 || compare(release, to) > 0) return;
  throw new RefusalError(
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
  readonly handle: Handler;
  readonly log: Log;
  /** Paths that a newcomer can try. */
  readonly samples: readonly string[];
  /** Lets go of what the app holds, once the last request is finished. */
  readonly close: () => Promise<void>;
}

/** A module's default export for `deno serve`, that can also listen by itself. */
export interface Server extends Deno.ServeDefaultExport {
  /**
   * Puts the app together, or ends the process with the reason why not. Listens, unless
   * `deno serve` does, until SIGINT or SIGTERM, and then until the requests in flight are
   * finished; a second signal ends the process at once.
   */
  readonly start: () => Promise<void>;
}

/** Makes a server of an app, which is put together when it is first needed. */
export function createServer(assemble: () => Promise<App>): Server {
  let app: Promise<App> | undefined;

  let hasStarted = false;

  async function onListen(address: Deno.Addr): Promise<void> {
    const { log, samples } = await (app ??= assemble());
    const { hostname, port } = address as Deno.NetAddr;
    log({ event: "start", hostname, port, deno: Deno.version.deno });
    for (const path of samples) console.log(`curl -I http://localhost:${port}${path}`);
    hasStarted = true;
  }

  async function start(): Promise<void> {
    const isServed = watchDenoServe();
    try {
      const ready = await (app ??= assemble());
      // Once the last request is finished, no event is left to wait for, whoever stopped the server.
      addEventListener("beforeunload", async (event) => {
        event.preventDefault(); // there is something left to do
        await ready.close();
        if (hasStarted) ready.log({ event: "stop" });
      }, { once: true });
      if (!await isServed) listen(ready, onListen);
    } catch (error) {
      refuse(error);
    }
  }

  return {
    fetch: async (request) => (await (app ??= assemble())).handle(request),
    onListen,
    start,
  };
}

/**
 * Finds out whether `deno serve` runs this module. Nothing tells it from `deno run`
 * (denoland/deno#29447), but it calls `Deno.serve` right after the module, before the next task,
 * in each of its threads. What it does not offer to set, is set on the way.
 */
async function watchDenoServe(): Promise<boolean> {
  const original = Object.getOwnPropertyDescriptor(Deno, "serve") as PropertyDescriptor;
  const { serve } = Deno;
  let isServed = false;
  const watched = (options: Deno.ServeTcpOptions & Deno.ServeInit<Deno.NetAddr>) => {
    isServed = true;
    return serve({ ...options, ...UNCOMPRESSED });
  };
  Object.defineProperty(Deno, "serve", { configurable: true, value: watched });
  await new Promise((resolve) => setTimeout(resolve));
  Object.defineProperty(Deno, "serve", original);
  return isServed;
}

/** Compressed by the runtime, a GET would say other things than its HEAD. */
const UNCOMPRESSED = { automaticCompression: false };

function listen({ host: hostname, port, handle }: App, onListen: (addr: Deno.Addr) => void): void {
  const options = { hostname, port, onListen, ...UNCOMPRESSED };
  let server: Deno.HttpServer;
  try {
    server = Deno.serve(options, handle);
  } catch (error) {
    const reason = REASONS.find(([type]) => error instanceof type)?.[1] ?? (error as Error).message;
    throw new RefusalError(`Cannot listen on ${hostname}:${port}: ${reason}`, { cause: error });
  }
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  const stop = () => {
    for (const signal of signals) Deno.removeSignalListener(signal, stop);
    server.shutdown();
  };
  for (const signal of signals) Deno.addSignalListener(signal, stop);
}

/** What the system says of an address that cannot be had, in words for the operator. */
const REASONS: readonly (readonly [new (message: string) => Error, string])[] = [
  [Deno.errors.AddrInUse, "another process has it (choose another PORT)"],
  [Deno.errors.AddrNotAvailable, "this machine has no such address (choose another HOST)"],
  [Deno.errors.PermissionDenied, "it is not allowed (choose a PORT from 1024 on)"],
];

/** A start that cannot succeed ends with a line for each reason; a bug keeps its stack. */
function refuse(error: unknown): never {
  const isExpected = error instanceof RefusalError || error instanceof ConfigError ||
    error instanceof StorageError;
  if (!isExpected) throw error;
  const cause = error instanceof StorageError && error.cause instanceof Error
    ? ` (${error.cause.message})`
    : "";
  console.error(`media-head does not start: ${error.message}${cause}`);
  Deno.exit(1);
}
