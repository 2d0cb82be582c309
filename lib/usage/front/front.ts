/** The proxy in front of any server: it retires paths, and forwards everything. */

import { unlink } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { RefusedError } from "../../errors/refused_error.ts";
import { messageOf } from "../../input/printable.ts";
import type { RequestHead } from "../../lifecycle/serving/options.ts";
import { FaultLog, type Log } from "../../log/log.ts";
import { openRecord, type Usage } from "../open_record.ts";
import {
  createForwarder,
  type Exchange,
  hasContent,
  MAX_HEAD_BYTES,
  type Pair,
  prepareUpgrade,
  sendProblem,
} from "./forward.ts";
import { serveNotice } from "./notice.ts";
import { match, successorOf } from "./routing.ts";
import type { FrontRoute, FrontSettings } from "./settings.ts";

/** How long an idle connection of a client is kept, in milliseconds: longer than nginx keeps its own. */
const KEEP_ALIVE_MS = 75_000;

/** How long the head of a request may take, in milliseconds. */
const HEAD_MS = 60_000;

/** How long requests in flight may take when the proxy stops, in milliseconds. */
const STOP_MS = 10_000;

/** A proxy that listens. */
export interface Front {
  /** Stops listening, finishes the requests in flight as far as time allows, and ends the record. */
  stop(): Promise<void>;
}

/** What is known of a response before it is sent. */
interface Known {
  readonly route: FrontRoute;
  /** The client's id, in the response of the server behind. */
  client?: string | undefined;
}

/** @throws {RefusedError} If it cannot listen. */
export async function startFront(settings: FrontSettings, log: Log): Promise<Front> {
  const { routes, database, publicUrl, contact, retainDays, notice, upstream } = settings;
  const { usage, policies } = await openRecord(database, "database", {
    routes: Object.fromEntries(routes.map(({ name, policy }) => [name, policy])),
    ...{ publicUrl, contact, retainDays, log },
  });
  const faults = new FaultLog(log);
  const forwarder = createForwarder(
    settings,
    (fault, status) => {
      const kind = `${status} ${fault.code}`;
      faults.log(messageOf(fault), { status, upstream: upstream.url }, { kind });
    },
  );
  const known = new WeakMap<IncomingMessage, Known>();
  const retired = new Map(routes.map((route) => [route, middlewareOf(route, usage, known)]));

  const handle = (request: IncomingMessage, response: ServerResponse, socket?: Socket) => {
    const target = request.url ?? "/";
    const problem = forwarder.problemOf(request);
    if (problem !== undefined) return sendProblem({ request, response }, problem);
    if (target.replace(/[?#].*/s, "") === notice) {
      return void serveNotice(request, response, settings, policies());
    }
    const found = match(routes, target);
    if (found === undefined) return forwarder.forward({ request, response, socket });
    const { route } = found;
    const about: Known = { route };
    known.set(request, about);
    const onFields = (fields: Pair[]) => takeClient(fields, about);
    const exchange: Exchange = { request, response, socket, onFields };
    retired.get(route)?.(request, response, () => forwarder.forward(exchange));
  };

  const server = serverFor(handle);
  try {
    await listen(server, settings.listen);
  } catch (error) {
    await usage.close();
    throw error;
  }
  return { stop: stopping(server, forwarder, usage) };
}

/** Returns what retires a route. */
function middlewareOf(
  route: FrontRoute,
  usage: Usage,
  known: WeakMap<IncomingMessage, Known>,
) {
  const { name, successor, clientField, answers } = route;
  const origin = successor !== undefined && /^https:/i.test(successor)
    ? new URL(successor).origin
    : undefined;
  return usage.retire<IncomingMessage, ServerResponse>(name, {
    answers,
    ...successor === undefined ? {} : {
      successor: ({ url }: RequestHead) => {
        const found = match([route], url);
        return found && successorOf(successor, found, url);
      },
    },
    ...origin === undefined ? {} : { successorOrigin: origin },
    ...clientField === undefined ? {} : {
      client: (request) => {
        const value = known.get(request)?.client || request.headers[clientField];
        return Array.isArray(value) ? value.join(", ") : value;
      },
    },
  });
}

/** Takes the field that names the client out of a response. */
function takeClient(fields: Pair[], known: Known): Pair[] {
  const { clientField } = known.route;
  if (clientField === undefined) return fields;
  const isClient = ([name]: Pair) => name.toLowerCase() === clientField;
  known.client = fields.find(isClient)?.[1];
  return fields.filter((pair) => !isClient(pair));
}

/** Whether a request asks for a WebSocket. Any other upgrade may be ignored (RFC 9110 §7.8). */
function isWebSocket(request: IncomingMessage): boolean {
  const { method, headers } = request;
  return method === "GET" && /^websocket$/i.test(headers.upgrade ?? "") && !hasContent(request);
}

type Handle = (request: IncomingMessage, response: ServerResponse, socket?: Socket) => void;

function serverFor(handle: Handle): Server {
  const options = {
    ...{ keepAliveTimeout: KEEP_ALIVE_MS, maxHeaderSize: MAX_HEAD_BYTES },
    requestTimeout: 0, // an upload may take long
    headersTimeout: HEAD_MS,
    shouldUpgradeCallback: isWebSocket,
  };
  const server = createServer(options, (request, response) => handle(request, response));
  server.maxHeadersCount = 0; // or else what comes after 2,000 fields is lost, such as a length
  // Content that a client announces is asked for once the request is forwarded, and not refused.
  server.on("checkContinue", (request, response) => handle(request, response));
  server.on("upgrade", (request, stream, head) => {
    const socket = stream as Socket;
    socket.on("error", () => socket.destroy()).unshift(head);
    if (!isWebSocket(request)) return handleAgain(server, request, socket);
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    try {
      response.assignSocket(socket);
    } catch { // a request before it on its connection is not answered yet
      return void socket.destroy();
    }
    response.on("finish", () => socket.destroySoon());
    prepareUpgrade(response, socket);
    handle(request, response, socket);
  });
  return server;
}

/** Has an older Node read a request again, without the upgrade that it asks for. */
function handleAgain(server: Server, request: IncomingMessage, socket: Socket): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = rawHeaders.flatMap((name, at) => {
    const isOfHop = ["connection", "upgrade", "http2-settings"].includes(name.toLowerCase());
    return at % 2 === 1 || isOfHop ? [] : [`${name}: ${rawHeaders[at + 1]}\r\n`];
  });
  const head = `${method} ${url} HTTP/${httpVersion}\r\n${lines.join("")}\r\n`;
  socket.unshift(Buffer.from(head, "latin1"));
  server.emit("connection", socket);
}

/** @throws {RefusedError} If it cannot listen. */
async function listen(server: Server, place: FrontSettings["listen"]): Promise<void> {
  const attempt = () =>
    new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      // Another user's proxy in front has to reach the socket, as it would reach a port.
      const options = { ...place, readableAll: true, writableAll: true };
      server.listen(options, () => {
        server.off("error", reject);
        resolve();
      });
    });
  try {
    await attempt().catch(async (error) => {
      if (!("path" in place) || error.code !== "EADDRINUSE" || await answers(place.path)) {
        throw error;
      }
      await unlink(place.path); // a process that was killed has left it
      await attempt();
    });
  } catch (cause) {
    throw new RefusedError(`listen: cannot listen on ${place.name}`, { cause });
  }
}

/** Returns whether a process listens on a socket. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path, () => resolve(true));
    socket.on("connect", () => socket.destroy()).on("error", () => resolve(false));
  });
}

function stopping(
  server: Server,
  forwarder: Pick<ReturnType<typeof createForwarder>, "close">,
  usage: Usage,
): () => Promise<void> {
  const connections = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket));
  });
  return async () => {
    // Each connection ends with its next response; those that are idle, or were never used, at once.
    server.prependListener("request", (_, response) => response.shouldKeepAlive = false);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    const sweep = () => {
      server.closeIdleConnections();
      for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
    };
    sweep();
    const timer = setInterval(sweep, 500);
    const late = setTimeout(() => {
      for (const socket of connections) socket.destroy();
    }, STOP_MS);
    await closed;
    clearInterval(timer);
    clearTimeout(late);
    forwarder.close();
    await usage.close();
  };
}
