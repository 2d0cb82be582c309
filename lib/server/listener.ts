/** Listening for requests, even after the process runs out of file descriptors. */

import { FaultLog, type Log } from "../log/log.ts";
import type { Config } from "./config.ts";

/** Milliseconds before listening again, because at first no descriptor is free. */
const RETRY_DELAY_MS = 2_000;

/**
 * Milliseconds for which responses ask clients to close their connections (RFC 9112 §9.6), before
 * the server closes them itself. It waits only if another process can take over. Deno closes idle
 * connections at once, and others after a response without `Connection: close`, so a client's next
 * request would go unanswered.
 */
const DRAIN_MS = 2_000;

/** Starts listening by `Deno.serve`, also after an outage. Throws if it cannot listen. */
export type Listen = (
  options: Deno.ServeTcpOptions & { onListen(address: Deno.NetAddr): void },
) => Deno.HttpServer<Deno.NetAddr>;

interface ListenOptions extends Pick<Config, "host" | "port" | "reusePort"> {
  readonly listen: Listen;
  readonly log: Log;
  /** Called once, with the address on which the server listens. */
  readonly onListen: (address: Deno.NetAddr) => void;
}

/**
 * Wraps a handler to ask clients to close their connections as soon as the process is stopping.
 *
 * @param stopping Aborts then.
 */
export function closeWhenStopping(
  handle: (request: Request) => Response | Promise<Response>,
  stopping: AbortSignal,
): (request: Request) => Response | Promise<Response> {
  const answerAndClose = async (request: Request) => {
    const response = await handle(request);
    const copy = new Response(response.body, response); // others share a prepared response
    copy.headers.set("Connection", "close");
    return copy;
  };
  return (request) => stopping.aborted ? answerAndClose(request) : handle(request);
}

/** A server that listens until it is shut down. */
export class Listener {
  readonly #options: ListenOptions;
  /** The last server listens. The others, whose listeners failed, still serve connections. */
  readonly #servers = new Set<Deno.HttpServer<Deno.NetAddr>>();
  readonly #faults: FaultLog;
  #isStopping = false;

  /**
   * @throws {Error} If it cannot listen. The error is one of `Deno.errors` if the reason is known.
   */
  constructor(options: ListenOptions) {
    this.#options = options;
    this.#faults = new FaultLog(options.log);
    // When Deno 2.9.6 parses its first stack, it opens a file to measure the thread's stack, and
    // panics if no descriptor is free (stacker 0.1.15; no issue was found). So parse one while some
    // are free.
    void new Error().stack;
    this.#listen(options.port, options.onListen);
  }

  /**
   * Stops listening, and waits for the requests in flight. On a shared port, it first keeps serving
   * for {@linkcode DRAIN_MS}.
   */
  async shutdown(): Promise<void> {
    this.#isStopping = true;
    if (this.#options.reusePort) await new Promise((resolve) => setTimeout(resolve, DRAIN_MS));
    await Promise.all([...this.#servers].map((server) => server.shutdown()));
  }

  #listen(port: number, onListen: (address: Deno.NetAddr) => void): void {
    const { host: hostname, reusePort, listen } = this.#options;
    const server = listen({ hostname, port, reusePort, onListen });
    this.#servers.add(server);
    server.finished.catch((error) => this.#listenAgain(server.addr.port, error));
  }

  /**
   * Without a free descriptor, Deno stops listening but keeps its connections (no issue was found).
   */
  async #listenAgain(port: number, cause: unknown): Promise<void> {
    this.#faults.log(cause);
    while (!this.#isStopping) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
      if (this.#isStopping) return;
      try {
        return this.#listen(port, () => {});
      } catch (error) { // no descriptor is free yet, or the port is in use: retry in any case
        this.#faults.log(error);
      }
    }
  }
}
