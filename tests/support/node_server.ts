/** Node's server, which listens until it is disposed of, and its requests without one. */

import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { NodeResponse } from "../../lib/lifecycle/serving/retire.ts";

/** A server on a free port. Disposing of it ends it, with all of its connections. */
export interface NodeServer extends AsyncDisposable {
  readonly server: Server;
  readonly port: number;
}

/** Starts a server, and returns it once it listens. */
export async function listening(listener: RequestListener): Promise<NodeServer> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    server,
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers a request of Node by a handler of the Fetch API. */
export async function answerBy(
  handler: (request: Request) => Response | Promise<Response>,
  { method = "", url, headers }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const asked = new Request(`http://test${url}`, { method, headers: headers as HeadersInit });
  const answered = await handler(asked);
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  response.end(new Uint8Array(await answered.arrayBuffer()));
}

/** Returns a request and a response of Node, of which nothing is sent. */
export function exchange(headers: Record<string, string | undefined> = {}) {
  const response: NodeResponse = {
    statusCode: 200,
    headersSent: false,
    getHeaders: () => ({}),
    ...{ setHeader() {}, removeHeader() {}, writeHead() {}, once() {}, end() {} },
  };
  return [{ method: "GET", url: "/v1", headers }, response] as const;
}
