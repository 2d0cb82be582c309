/**
 * The forwarding of one request to the server behind, which changes nothing. On `node:http`, since
 * `fetch` replaces Host, says a length for a HEAD that had none, and drops trailers and WebSockets.
 *
 * There is no Via, though RFC 9110 §7.6.3 asks a gateway for one: nginx does not compress for a request
 * that has it.
 */

import {
  Agent,
  ClientRequest,
  type IncomingMessage,
  type OutgoingMessage,
  type ServerResponse,
} from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { NO_STORE } from "../../http/outcome.ts";
import { problemDetails } from "../../http/problem.ts";
import type { FrontSettings } from "./settings.ts";

/** The fields of a connection (RFC 9110 §7.6.1). */
const OF_HOP = ["connection", "keep-alive", "proxy-connection", "te", "upgrade"];

/** Fields that Connection cannot make those of a connection. */
const NEVER_OF_HOP = ["content-length", "host", "transfer-encoding"];

/** Fields that say who the client is, and how it asked. Many servers take "_" in a name for "-". */
const FORWARDED = /^(?:forwarded|x[-_]forwarded[-_].*|x[-_]real[-_]ip)$/i;

/** The field that tells a loop: the ids of the proxies that a request has passed. */
const LOOP_FIELD = "Lifecycle-Front";

/** The limit on a head, in bytes. */
export const MAX_HEAD_BYTES = 65_536;

/** The problems of a proxy (RFC 9110 §15.6). */
const PROBLEMS = {
  400: ["Bad Request", "The request has two Host fields, or one that cannot be passed on"],
  502: ["Bad Gateway", "The server behind this one gave no valid response"],
  504: ["Gateway Timeout", "The server behind this one gave no response in time"],
  508: ["Loop Detected", "The server behind this one passes requests back to it"],
} as const;

/** A request, and what is known of it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The connection, if the request asks for a WebSocket. */
  readonly socket?: Socket | undefined;
  /**
   * Takes the fields of a response, each a name and a value, before they are sent.
   *
   * @returns The fields to send.
   */
  readonly onFields?: ((fields: Pair[]) => Pair[]) | undefined;
}

export type Pair = readonly [name: string, value: string];

export interface Forwarder {
  /** Forwards a request. Never throws. */
  forward(exchange: Exchange): void;
  /** Returns the problem of a request that is not to be forwarded, if there is one. */
  problemOf(request: IncomingMessage): 400 | 508 | undefined;
  /** Closes the idle connections to the server behind. */
  close(): void;
}

/** @param onFault Called with the reason when the server behind fails. */
export function createForwarder(
  { upstream, behindProxy, timeoutMs }: Pick<
    FrontSettings,
    "upstream" | "behindProxy" | "timeoutMs"
  >,
  onFault: (fault: NodeJS.ErrnoException, status: number) => void,
): Forwarder {
  const { isSecure, host, port, socketPath } = upstream;
  const id = crypto.randomUUID();
  const agentWith = (keepAlive: boolean) =>
    new (isSecure ? SecureAgent : Agent)({ keepAlive, maxFreeSockets: 64 });
  const [reusing, single] = [agentWith(true), agentWith(false)];
  const ownHost = host === undefined ? "localhost" : new URL(upstream.url).host;

  /** Sends the head of a request. Only what can be sent again uses a connection that was idle. */
  const open = ({ request, socket }: Exchange, isReused: boolean): ClientRequest => {
    const { method, url: path, headers } = request;
    const isChunked = headers["transfer-encoding"] !== undefined;
    const sent = new ExactRequest({
      ...{ host, port, socketPath, method, path, maxHeaderSize: MAX_HEAD_BYTES },
      protocol: isSecure ? "https:" : "http:",
      agent: isReused ? reusing : single,
      headers: [
        ...fieldsOf(request, ...isChunked ? [] : ["trailer"])
          .filter(([name]) => behindProxy || !FORWARDED.test(name)),
        ...behindProxy ? [] : forwardedFields(request),
        [LOOP_FIELD, id] as const,
        ...headers.host === undefined ? [["Host", ownHost] as const] : [],
        ...socket ? [["Connection", "Upgrade"], ["Upgrade", "websocket"]] as const : [],
      ].flat(),
    });
    sent.maxHeadersCount = 0; // or else what comes after 2,000 fields is lost, such as a length
    // With Expect, Node has put the head in its queue already, to be sent as UTF-8.
    const queue: { encoding: string }[] = Reflect.get(sent, "outputData") ?? [];
    for (const queued of queue) queued.encoding = "latin1";
    return sent;
  };

  function forward(exchange: Exchange, isRetry = false): void {
    const { request, response, socket } = exchange;
    const isRepeatable = ["GET", "HEAD", "OPTIONS"].includes(request.method ?? "") &&
      !hasContent(request) && socket === undefined;
    let sent: ClientRequest;
    try {
      sent = open(exchange, isRepeatable && !isRetry);
    } catch { // a field that Node does not send
      return sendProblem(exchange, 400);
    }
    let isSettled = false; // answered, failed, sent again, or abandoned by its client
    const fail = (status: 502 | 504, fault: NodeJS.ErrnoException) => {
      if (isSettled) return;
      isSettled = true;
      sent.destroy();
      onFault(fault, status);
      sendProblem(exchange, status);
    };
    const timer = setTimeout(
      () => fail(504, new Error(`no response within ${timeoutMs / 1_000} s`)),
      timeoutMs,
    );
    sent.on("error", (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      // An idle connection may be closed in the moment in which it is used.
      const isReset = error.code === "ECONNRESET" || error.code === "EPIPE";
      if (isSettled || isRetry || !sent.reusedSocket || !isReset) return fail(502, error);
      isSettled = true;
      forward(exchange, true);
    });
    sent.on("continue", () => {
      const { headers, httpVersion } = request;
      if (headers.expect !== undefined && httpVersion === "1.1") response.writeContinue();
    });
    const early = socket?.pipe(new PassThrough()); // only who reads notices that a client leaves
    let isUpgraded = false;
    socket?.on("end", () => isUpgraded || socket.destroy());
    sent.on("response", (answer) => {
      clearTimeout(timer);
      if (isSettled) return void answer.destroy();
      try {
        passHead(answer, exchange);
      } catch (error) { // a status or a field that Node does not send
        return fail(502, error as Error);
      }
      isSettled = true;
      early?.resume();
      answer.on("error", () => cut(response));
      passTrailers(answer, response).pipe(response);
    });
    sent.on("upgrade", (answer, behind, first) => {
      clearTimeout(timer);
      behind.on("error", () => behind.destroy());
      if (socket === undefined || early === undefined || isSettled) {
        behind.destroy();
        return fail(502, new Error("an upgrade that was not asked for"));
      }
      try {
        passUpgrade(answer, exchange, socket);
      } catch (error) {
        behind.destroy();
        return fail(502, error as Error);
      }
      isSettled = isUpgraded = true;
      socket.write(first);
      early.pipe(behind).pipe(socket);
      behind.on("close", () => socket.destroySoon());
      socket.on("close", () => behind.destroy());
    });
    const connection = socket ?? request.socket;
    // A response that waits for an earlier one on its connection is not told of the connection's end.
    const leave = () => response.emit("close");
    connection.on("close", leave);
    response.on("close", () => {
      clearTimeout(timer);
      connection.off("close", leave);
      isSettled = true;
      sent.destroy();
    });
    if (socket !== undefined || !hasContent(request)) return void sent.end();
    upload(request, sent, () => isSettled || timer.refresh());
  }

  return {
    forward: (exchange) => forward(exchange),
    problemOf({ rawHeaders, headers }) {
      if (String(headers[LOOP_FIELD.toLowerCase()]).split(", ").includes(id)) return 508;
      const hosts = pairsOf(rawHeaders).filter(([name]) => name.toLowerCase() === "host");
      return hosts.length > 1 ? 400 : undefined;
    },
    close() {
      for (const agent of [reusing, single]) agent.destroy();
    },
  };
}

/** A request with no other framing than its fields say: Node would send a POST without content in chunks. */
class ExactRequest extends ClientRequest {}
Object.defineProperty(ExactRequest.prototype, "useChunkedEncodingByDefault", {
  get: () => false,
  set() {},
});

/** Cuts a response off where its content was cut off. */
function cut(response: ServerResponse): void {
  if (response.socket === null) response.destroy(); // it waits for an earlier one
  else response.socket.destroySoon(); // what was written is still sent
}

/** Sends a problem in place of a response, if nothing is sent yet. */
export function sendProblem(
  { request, response }: Pick<Exchange, "request" | "response">,
  status: keyof typeof PROBLEMS,
): void {
  if (response.headersSent) return void response.destroy();
  for (const name of response.getHeaderNames()) response.removeHeader(name); // of one that failed
  const [title, detail] = PROBLEMS[status];
  const { fields, body } = problemDetails({ status, title, detail, fields: [NO_STORE] });
  response.sendDate = true;
  response.writeHead(status, title, fields.flat());
  response.end(request.method === "HEAD" ? undefined : body);
  request.resume();
}

function pairsOf(raw: readonly string[]): Pair[] {
  return raw.flatMap((name, at): Pair[] => at % 2 === 1 ? [] : [[name, raw[at + 1] ?? ""]]);
}

/** Returns the fields to pass on, as they came. */
function fieldsOf({ headers, rawHeaders }: IncomingMessage, ...others: string[]): Pair[] {
  const named = (headers.connection ?? "").toLowerCase().split(/[\s,]+/);
  const isOfHop = (name: string) => !NEVER_OF_HOP.includes(name) && !FORWARDED.test(name);
  const dropped = [...OF_HOP, ...named.filter(isOfHop), ...others];
  return pairsOf(rawHeaders).filter(([name]) => !dropped.includes(name.toLowerCase()));
}

/** Returns the fields that say who the client is, in place of those that it sent itself. */
function forwardedFields({ socket, headers }: IncomingMessage): Pair[] {
  const isSecure = "encrypted" in socket;
  return [
    ["X-Forwarded-For", socket.remoteAddress ?? "unknown"],
    ["X-Forwarded-Proto", isSecure ? "https" : "http"],
    ...headers.host === undefined ? [] : [["X-Forwarded-Host", headers.host] as const],
  ];
}

/** Returns whether a request announces content. */
export function hasContent({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Matches a reason phrase that Node sends. */
const REASON = /^[\t -~\x80-\xff]*$/;

/** Sends the head of a response at once. */
function passHead(answer: IncomingMessage, { request, response, onFields }: Exchange): void {
  const { statusCode = 502, statusMessage = "" } = answer;
  const mayChunk = /\bchunked\s*$/i.test(answer.headers["transfer-encoding"] ?? "") &&
    request.httpVersion === "1.1" && statusCode !== 204 && statusCode !== 304;
  const fields = fieldsOf(answer, ...mayChunk ? [] : ["transfer-encoding", "trailer"]);
  response.sendDate = false; // or Node would add it where there is none
  const reason = REASON.test(statusMessage) ? [statusMessage] : [];
  writeHead(response, statusCode, reason, onFields?.(fields) ?? fields);
  response.write("", "latin1"); // sends the head now, which flushHeaders() would do in UTF-8
}

function writeHead(
  response: ServerResponse,
  status: number,
  reason: readonly string[],
  fields: readonly Pair[],
): void {
  Reflect.apply(response.writeHead, response, [status, ...reason, fields.flat()]);
}

/** Passes on the trailers of a message, once it has ended. */
function passTrailers(from: IncomingMessage, to: OutgoingMessage): IncomingMessage {
  return from.on("end", () => {
    try {
      to.addTrailers(pairsOf(from.rawTrailers) as [string, string][]);
    } catch { // one that Node does not send; the message is whole without it
    }
  });
}

/**
 * Sends the response to an upgrade, by hand: Node would add fields of its own. Whoever counts calls has
 * replaced `writeHead` by one that adds fields, and calls the one here with all of them set.
 */
function passUpgrade(answer: IncomingMessage, exchange: Exchange, socket: Socket): void {
  const { response, onFields } = exchange;
  const fields = fieldsOf(answer);
  writeHead(response, 101, [], onFields?.(fields) ?? fields);
  response.detachSocket(socket);
}

/**
 * Makes a response write the head of an upgrade to its socket. Call this before anything else replaces
 * `writeHead`.
 */
export function prepareUpgrade(response: ServerResponse, socket: Socket): void {
  const { writeHead } = response;
  response.writeHead = ((...args: readonly unknown[]) => {
    if (args[0] !== 101) return Reflect.apply(writeHead, response, args);
    const given = args.find(Array.isArray) as readonly string[] | undefined;
    const set = rawNamesOf(response).flatMap((name) =>
      [response.getHeader(name) ?? []].flat().map((value): Pair => [name, String(value)])
    );
    const fields = [
      ...set,
      ...pairsOf(given ?? []),
      ["Connection", "Upgrade"] as const,
      ["Upgrade", "websocket"] as const,
    ];
    const lines = fields.map((pair) => `${pair.join(": ")}\r\n`).join("");
    if (!/^[\t\r\n -~\x80-\xff]*$/.test(lines)) throw new Error("a field that cannot be sent");
    response.statusCode = 101;
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`, "latin1");
    return response;
  }) as typeof response.writeHead;
}

/** Returns the names of the fields that are set, as they were spelled. */
function rawNamesOf(response: ServerResponse): string[] {
  const { getRawHeaderNames } = response as { getRawHeaderNames?: () => string[] };
  return getRawHeaderNames?.call(response) ?? response.getHeaderNames(); // not in Deno's types
}

/** Sends the content of a request. A response that comes before its end is read all the same. */
function upload(request: IncomingMessage, sent: ClientRequest, onProgress: () => void): void {
  sent.on("socket", forgiveWrites);
  sent.write("", "latin1"); // sends the head now
  request.on("data", onProgress);
  passTrailers(request, sent).pipe(sent);
  sent.on("close", () => request.resume());
}

/**
 * Ignores that content cannot be written any more: the server behind may have responded and closed, and
 * an error would throw away what it sent.
 */
function forgiveWrites(socket: Socket): void {
  const { _write, _writev } = socket;
  let isDeaf = false;
  const forgiving = (done: (error?: Error | null) => void) => (error?: Error | null) => {
    isDeaf ||= /^(?:EPIPE|ECONNRESET)$/.test((error as NodeJS.ErrnoException)?.code ?? "");
    done(isDeaf ? null : error);
  };
  socket._write = (chunk, encoding, done) =>
    isDeaf ? done() : _write.call(socket, chunk, encoding, forgiving(done));
  if (_writev === undefined) return;
  socket._writev = (chunks, done) =>
    isDeaf ? done() : _writev.call(socket, chunks, forgiving(done));
}
