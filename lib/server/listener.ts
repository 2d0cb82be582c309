/**
 * Listening for requests, also beyond the point where the process runs out of file descriptors.
 */

import type { Handler } from "./responder.ts";
import { describeError, type Log } from "./log.ts";

/**
 * Milliseconds before listening again: at once, there is still no descriptor free. Each attempt of
 * an outage waits longer by a tenth, because what has ended is kept for its connections.
 */
const [RETRY_DELAY, MAX_RETRY_DELAY] = [1_000, 10_000];

/** Milliseconds within which one failure of the listener follows another from the same cause. */
const OUTAGE = 60_000;

/**
 * Milliseconds for which clients are asked to close their connections (RFC 9112, section 9.6) before
 * this side does, where another process can take over. Deno closes idle ones at once, and the others
 * after a response that does not say so: what a client sends next would go unanswered.
 */
const DRAIN = 2_000;

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
  readonly #reported = new Set<string>();
  #attempts = 0;
  #isStopping = false;

  /** @throws {Error} When the address cannot be had; of `Deno.errors` where the system says why. */
  constructor(options: ListenOptions) {
    this.#options = options;
    // The first stack that Deno 2.9.6 parses measures the thread's with a file of its own, and panics
    // without a descriptor for it (stacker 0.1.15): read one while there are some.
    void new Error().stack;
    this.#listen(options.port, options.onListen);
  }

  /** Responses that are not sent whole yet. */
  get unfinished(): number {
    return this.#unfinished;
  }

  /**
   * Stops listening, and waits until the requests in flight are finished. On a shared port it serves
   * on for {@linkcode DRAIN} first.
   */
  async shutdown(): Promise<void> {
    this.#isStopping = true;
    if (this.#options.reusePort) await new Promise((resolve) => setTimeout(resolve, DRAIN));
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
    this.#report(cause);
    while (!this.#isStopping) {
      const delay = Math.min(RETRY_DELAY * (1 + this.#attempts++ / 10), MAX_RETRY_DELAY);
      await new Promise((resolve) => setTimeout(resolve, delay));
      if (this.#isStopping) return;
      try {
        return this.#listen(port, () => {});
      } catch (error) { // still no descriptor, or the port is taken: whatever it is, try again
        this.#report(error);
      }
    }
  }

  /** Logs a cause, unless it was logged in the same outage. */
  #report(cause: unknown): void {
    const [now, { message }] = [performance.now(), cause as Error];
    if (now - this.#failedAt > OUTAGE) {
      this.#reported.clear();
      this.#attempts = 0;
    }
    this.#failedAt = now;
    if (this.#reported.has(message)) return;
    this.#reported.add(message);
    this.#options.log({ event: "error", cause: describeError(cause) });
  }

  readonly #handle: Deno.ServeHandler = (request, info) => {
    const response = this.#options.handle(request);
    if (!(response instanceof Response)) return this.#count(response, info);
    if (request.method === "GET") this.#countUntil(info.completed); // others have no content
    return this.#send(response);
  };

  #send(response: Response): Response {
    if (!this.#isStopping) return response;
    const last = new Response(response.body, response); // the one given is not to be changed
    last.headers.set("Connection", "close");
    return last;
  }

  async #count(pending: Promise<Response>, info: Deno.ServeHandlerInfo): Promise<Response> {
    const response = await this.#countUntil(pending);
    if (response.body !== null) this.#countUntil(info.completed);
    return this.#send(response);
  }

  /** Counts one more, until a promise is settled. */
  #countUntil<T>(settled: Promise<T>): Promise<T> {
    this.#unfinished++;
    const finish = () => void this.#unfinished--;
    settled.then(finish, finish); // a client that is gone rejects it
    return settled;
  }
}
