/**
 * Listening for requests, also beyond the point where the process runs out of file descriptors.
 */

import type { Handler } from "./responder.ts";
import { describeError, type Log } from "./log.ts";

/** Milliseconds before listening again: at once, there is still no descriptor free. */
const RETRY_DELAY = 1_000;

/** Milliseconds within which one failure of the listener follows another from the same cause. */
const OUTAGE = 60_000;

/** Ended listeners whose connections are still served; of older ones, idle connections close. */
const MAX_ENDED = 10;

/** Where to listen, and what for. */
export interface ListenOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** Whether other processes may listen on the same port. */
  readonly reusePort: boolean;
  readonly handle: Handler;
  readonly log: Log;
  /** Told once where it listens. */
  readonly onListen: (address: Deno.NetAddr) => void;
}

/** A server that listens until it is shut down. */
export class Listener {
  readonly #options: ListenOptions;
  /** The last listens; connections of the others are still served. */
  readonly #servers = new Set<Deno.HttpServer<Deno.NetAddr>>();
  #unfinished = 0;
  #failedAt = -Infinity;
  #isStopping = false;

  /** @throws {Error} When the address cannot be had; of `Deno.errors` where the system says why. */
  constructor(options: ListenOptions) {
    this.#options = options;
    this.#listen(options.port, options.onListen);
  }

  /** Responses that are not sent whole yet. */
  get unfinished(): number {
    return this.#unfinished;
  }

  /** Stops listening, and waits until the requests in flight are finished. */
  async shutdown(): Promise<void> {
    this.#isStopping = true;
    await Promise.all([...this.#servers].map((server) => server.shutdown()));
  }

  #listen(port: number, onListen: (address: Deno.NetAddr) => void): void {
    const { host: hostname, reusePort } = this.#options;
    const options = { hostname, port, reusePort, onListen, automaticCompression: false };
    const server = Deno.serve(options, this.#handle);
    this.#servers.add(server);
    server.finished.catch((error) => this.#listenAgain(server.addr.port, error));
  }

  /** Without a free descriptor, Deno gives up listening, but not the connections that it has. */
  async #listenAgain(port: number, cause: unknown): Promise<void> {
    const now = performance.now();
    if (now - this.#failedAt > OUTAGE) {
      this.#options.log({ event: "error", cause: describeError(cause) });
    }
    this.#failedAt = now;
    const [oldest] = this.#servers;
    if (this.#servers.size > MAX_ENDED && oldest !== undefined) {
      this.#servers.delete(oldest);
      oldest.shutdown();
    }
    while (!this.#isStopping) {
      await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY));
      if (this.#isStopping) return;
      try {
        return this.#listen(port, () => {});
      } catch {
        // Still no descriptor, or the port is taken for the moment: whatever it is, try again.
      }
    }
  }

  readonly #handle: Deno.ServeHandler = (request, info) => {
    const response = this.#options.handle(request);
    return response instanceof Response ? response : this.#count(response, info);
  };

  async #count(pending: Promise<Response>, info: Deno.ServeHandlerInfo): Promise<Response> {
    this.#unfinished++;
    const response = await pending;
    const finish = () => void this.#unfinished--;
    if (response.body === null) finish();
    else info.completed.then(finish, finish); // it rejects when the client is gone
    return response;
  }
}
