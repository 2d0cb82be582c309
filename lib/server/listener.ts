/**
 * Listening for requests, even after the process runs out of file descriptors.
 */

import type { Handler } from "./responder.ts";
import { describeError, type Log } from "./log.ts";

/**
 * Milliseconds before listening again: immediately, no descriptor would be free. The delay grows by
 * a tenth with each attempt, because every ended server is kept for its connections.
 */
const [RETRY_DELAY, MAX_RETRY_DELAY] = [1_000, 10_000];

/** Milliseconds within which failures of the listener count as one outage. */
const OUTAGE = 60_000;

/**
 * Milliseconds for which responses ask clients to close their connections (RFC 9112 §9.6) before
 * the server does, when another process can take over. Deno closes idle connections at once, and
 * others after a response without `Connection: close`: a client's next request would go unanswered.
 */
const DRAIN = 2_000;

/** Where to listen, and how to handle requests. */
export interface ListenOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Whether other processes may listen on the same port. */
  readonly reusePort: boolean;
  readonly handle: Handler;
  readonly log: Log;
  /** Called once, with the address it listens on. */
  readonly onListen: (address: Deno.NetAddr) => void;
}

/** A server that listens until it is shut down. */
export class Listener {
  readonly #options: ListenOptions;
  /** The last one listens; the others still serve their connections. */
  readonly #servers = new Set<Deno.HttpServer<Deno.NetAddr>>();
  #unfinished = 0;
  #failedAt = -Infinity;
  readonly #reported = new Set<string>();
  #attempts = 0;
  #isStopping = false;

  /** @throws {Error} If it cannot listen; from `Deno.errors` if the reason is known. */
  constructor(options: ListenOptions) {
    this.#options = options;
    // Parsing its first stack, Deno 2.9.6 opens a file to measure the thread's stack, and panics if
    // no descriptor is free (stacker 0.1.15). So parse one while there are some.
    void new Error().stack;
    this.#listen(options.port, options.onListen);
  }

  /** The number of responses not fully sent yet. */
  get unfinished(): number {
    return this.#unfinished;
  }

  /**
   * Stops listening, and waits for the requests in flight. On a shared port, it first keeps serving
   * for {@linkcode DRAIN}.
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

  /** Without a free descriptor, Deno stops listening, but keeps its connections. */
  async #listenAgain(port: number, cause: unknown): Promise<void> {
    this.#report(cause);
    while (!this.#isStopping) {
      const delay = Math.min(RETRY_DELAY * (1 + this.#attempts++ / 10), MAX_RETRY_DELAY);
      await new Promise((resolve) => setTimeout(resolve, delay));
      if (this.#isStopping) return;
      try {
        return this.#listen(port, () => {});
      } catch (error) { // still no descriptor, or the port is in use: retry in any case
        this.#report(error);
      }
    }
  }

  /** Logs a cause once per outage. */
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
    const isGet = request.method === "GET"; // `response.body` would turn bytes into a stream
    if (!(response instanceof Response)) return this.#count(response, isGet ? info : undefined);
    if (isGet) this.#countUntil(info.completed);
    return this.#send(response);
  };

  #send(response: Response): Response {
    if (!this.#isStopping) return response;
    const last = new Response(response.body, response); // a copy: the response may be reused
    last.headers.set("Connection", "close");
    return last;
  }

  async #count(pending: Promise<Response>, info?: Deno.ServeHandlerInfo): Promise<Response> {
    const response = await this.#countUntil(pending);
    if (info !== undefined) this.#countUntil(info.completed);
    return this.#send(response);
  }

  /** Counts a response as unfinished until a promise settles. */
  #countUntil<T>(settled: Promise<T>): Promise<T> {
    this.#unfinished++;
    const finish = () => void this.#unfinished--;
    settled.then(finish, finish); // rejects if the client disconnects
    return settled;
  }
}
