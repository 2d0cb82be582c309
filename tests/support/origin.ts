/**
 * A web server whose content is published by URL, in the test's process. It records its requests.
 */

import { fulfilledWithin } from "../../lib/async/deadline.ts";

/** Milliseconds that the end may take. */
const TIMEOUT = 10_000;

/** How an origin answers a request. */
export type Answer = (request: Request) => Response | Promise<Response>;

/** A running server on a free port. Disposing of it ends it. */
export class Origin implements AsyncDisposable {
  /** The method and path of every request, in order of arrival. */
  readonly requests: string[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #scheme: string;
  readonly #end = new AbortController();

  /** @param certificate Serves HTTPS, if given. */
  constructor(answer: Answer, certificate?: Deno.TlsCertifiedKeyPem) {
    this.#scheme = certificate === undefined ? "http" : "https";
    const { signal } = this.#end;
    const options = { hostname: "127.0.0.1", port: 0, onListen() {}, signal, ...certificate };
    this.#server = Deno.serve(options, (request) => {
      const { pathname, search } = new URL(request.url);
      this.requests.push(`${request.method} ${pathname}${search}`);
      return answer(request);
    });
  }

  /** Returns the URL of a path. */
  url(path: string): string {
    return `${this.#scheme}://127.0.0.1:${this.#server.addr.port}${path}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // shutdown() of Deno 2.9.6 may wait forever for a connection that its client closed without a
    // request, although denoland/deno#31959 mended that, and aborting after it throws where nobody can
    // catch it (no issue was found).
    this.#end.abort();
    await fulfilledWithin(TIMEOUT, this.#server.finished);
  }
}
