/** Retirement for servers on `node:http` and for the frameworks built on it. */

import { isHost } from "../../http/host.ts";
import type { Field } from "../../http/outcome.ts";
import { readOr, valueText } from "../any_value.ts";
import type { Policy } from "../policy.ts";
import type { Refusal } from "../refusal.ts";
import { isForCaches, keepRestrictions } from "../restrictions.ts";
import type { LifecycleOptions, RequestHead } from "./options.ts";
import { headersOf, membersOf, textOr } from "./request_head.ts";
import { type ApplyRetirement, type Retirement, retirementOf } from "./retirement.ts";

/** The members used of an `IncomingMessage` or an `Http2ServerRequest`. */
export type NodeRequest = {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly originalUrl?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket?: object | null;
  readonly stream?: object;
  readonly upgrade?: boolean;
  once?(event: "close", listener: () => void): unknown;
};

/** The members used of a `ServerResponse` or an `Http2ServerResponse`. */
export type NodeResponse = {
  statusCode: number;
  readonly headersSent: boolean;
  getHeaders(): Readonly<Record<string, unknown>>;
  setHeader(name: string, value: string | string[]): unknown;
  removeHeader(name: string): unknown;
  writeHead: (...args: never[]) => unknown;
  once(event: "close", listener: () => void): unknown;
  end(content?: unknown): unknown;
};

/** Either calls `next` and returns its result, or refuses and returns `undefined`. */
export type Middleware<Incoming = NodeRequest, Outgoing = NodeResponse> = <Result>(
  request: Incoming,
  response: Outgoing,
  next: () => Result,
) => Result | undefined;

/** Fields of the resource that a refusal drops, besides those for caches. */
const DROPPED_FIELDS = new Set(["age", "content-encoding", "set-cookie"]);

/**
 * Creates a middleware that retires the handlers after it. It works with `node:http` (also over
 * HTTP/2), Express, and anything else that has Node's request and response. It makes the same
 * promises as `withLifecycle()`, with the same options. However a response is made, the
 * announcement is added when its head is sent.
 *
 * @param options Its functions receive the method, the whole URL (from `originalUrl` if there is
 *   one) and the fields of the request. `onCount` also receives Node's request and response. A
 *   refusal keeps the fields already set on the response, except Age, Content-Encoding and
 *   Set-Cookie. Of those for caches, it keeps what restricts caches, and drops what permits. If the
 *   fields include Access-Control-Allow-Origin, they replace the CORS fields of `refusalFields`.
 * @throws {TypeError} If the policy is not from `definePolicy()`, or an option is not valid.
 *
 * @example Retire a server on `node:http`
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { once } from "node:events";
 * import { createServer } from "node:http";
 * import type { AddressInfo } from "node:net";
 * import { definePolicy, retire } from "@media-head/lifecycle";
 *
 * const policy = definePolicy({ deprecatedAt: "2026-11-21" });
 * const retired = retire(policy, { successor: () => "/v2/songs" });
 * const server = createServer((request, response) =>
 *   retired(request, response, () => response.end("old"))
 * );
 *
 * server.listen(0, "127.0.0.1");
 * await once(server, "listening");
 * const { port } = server.address() as AddressInfo;
 * const { headers } = await fetch(`http://127.0.0.1:${port}/v1/songs`, { method: "HEAD" });
 * assertEquals(headers.get("Link"), '</v2/songs>; rel="successor-version"');
 * server.closeAllConnections();
 * await new Promise((resolve) => server.close(resolve));
 * ```
 */
export function retire<
  Incoming extends NodeRequest = NodeRequest,
  Outgoing extends NodeResponse = NodeResponse,
>(
  policy: Policy,
  options: LifecycleOptions<RequestHead, readonly [Incoming, Outgoing]> = {},
): Middleware<Incoming, Outgoing> {
  return middlewareOf(retirementOf(policy, options));
}

/** Returns the middleware of {@linkcode retire}, given what applies the policy. */
export function middlewareOf<Incoming extends NodeRequest, Outgoing extends NodeResponse>(
  apply: ApplyRetirement<RequestHead, readonly [Incoming, Outgoing]>,
): Middleware<Incoming, Outgoing> {
  return (request, response, next) => {
    if (response.headersSent) return next();
    const retirement = apply(headOf(request), request, response);
    const { refused, now } = retirement;
    // An upgrade that is served has no response, and may never be counted.
    if (refused !== undefined || !readOr(false, () => request.upgrade === true)) {
      retirement.arrive();
    }
    addAnnouncement(response, retirement);
    countIfLeft(request, response, retirement);
    return refused === undefined ? next() : refuse(request, response, refused, now);
  };
}

/** Adds the announcement to a response, and counts the call, when its head is sent. */
function addAnnouncement(response: NodeResponse, { announce, count }: Retirement): void {
  const { writeHead } = response;
  response.writeHead = (status: number, reason?: unknown, fields?: unknown) => {
    const args = typeof reason === "string" ? [status, reason] : [status];
    if (!response.headersSent) { // otherwise setting fields would throw
      setFields(response, typeof reason === "string" ? fields : fields ?? reason);
      setFields(response, announce(fieldsOf(response), Number(status)));
    }
    const result: unknown = Reflect.apply(writeHead, response, args);
    count?.(response.statusCode);
    return result;
  };
}

/** Counts the call when its client disconnects, if it is not counted by then. */
function countIfLeft(request: NodeRequest, response: NodeResponse, { count }: Retirement): void {
  if (count === undefined) return;
  const leave = () => count(0);
  if (hasLeft(request)) return leave(); // while something before this middleware waited
  response.once("close", leave);
  // A response that waits for an earlier one on its connection is not told of the connection's end.
  readOr(undefined, () =>
    request.once?.("close", () => {
      if (hasLeft(request)) leave();
    }));
}

/** Returns whether the client has disconnected. */
function hasLeft(request: NodeRequest): boolean {
  const { stream, socket } = membersOf(request, ["stream", "socket"]);
  const { rstCode } = membersOf(stream, ["rstCode"]); // of HTTP/2, not of middleware
  const { destroyed } = membersOf(rstCode === undefined ? socket : stream, ["destroyed"]);
  return destroyed === true;
}

/** Sends a refusal. */
function refuse(
  request: NodeRequest,
  response: NodeResponse,
  { status, fields, body }: Refusal,
  now: number,
): undefined {
  const said = fieldsOf(response);
  for (const [name] of said) {
    if (isForCaches(name) || DROPPED_FIELDS.has(name)) response.removeHeader(name);
  }
  const isCors = ([name]: Field) => /^access-control-/i.test(name);
  const hasCors = Object.hasOwn(response.getHeaders(), "access-control-allow-origin");
  const added = fields.filter((field) => !hasCors || !isCors(field));
  setFields(response, keepRestrictions(added, said, now));
  response.statusCode = status;
  response.end(membersOf(request, ["method"]).method === "HEAD" ? undefined : body);
}

/** Returns the head of a Node request as a `Request` has it, whatever its method and Host. */
function headOf(request: NodeRequest): RequestHead {
  const members = membersOf(request, ["method", "url", "originalUrl", "headers", "socket"]);
  const target = textOr(textOr("/", members.url), members.originalUrl);
  const fields = Object(members.headers);
  const [authority, host, scheme] = [":authority", "host", ":scheme"]
    .map((name) => textOr("", readOr(undefined, () => fields[name])));
  const named = authority || host || "";
  const origin = named !== "" && isHost(named) ? named : "localhost";
  const { encrypted } = membersOf(members.socket, ["encrypted"]);
  const isSecure = scheme === "https" || encrypted === true;
  const url = /^https?:/i.test(target) ? target : `http${isSecure ? "s" : ""}://${origin}${target}`;
  return {
    method: textOr("GET", members.method),
    url: URL.canParse(url) ? new URL(url).href : url,
    get headers() {
      // Middleware may have set what no request can have, and Headers refuses.
      const valueOf = (value: unknown) =>
        value && valueText(value).replaceAll(/[^\t -~\x80-\xff]/g, "_");
      return headersOf(Object.entries(fields).map(([name, value]) => [name, valueOf(value)]));
    },
  };
}

/** Returns the fields of a response, each name once. */
function fieldsOf(response: NodeResponse): Field[] {
  return Object.entries(response.getHeaders())
    .map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : String(value)]);
}

/** Sets fields given in any form that `writeHead()` takes, with the same result. */
function setFields(response: NodeResponse, given: unknown): void {
  const isList = Array.isArray(given);
  const pairs = !isList
    ? Object.entries(Object(given))
    : Array.isArray(given[0])
    ? given
    : given.flatMap((name, index) => index % 2 === 0 ? [[name, given[index + 1]]] : []);
  // A list may repeat a name. An object may repeat one in another letter case, if no field was set.
  const mayRepeat = isList || Object.keys(response.getHeaders()).length === 0;
  const lines = new Map<string, [name: string, values: string[]]>();
  for (const [name, value] of pairs as [string, string | string[]][]) {
    const key = String(name).toLowerCase();
    const [, values = []] = mayRepeat ? lines.get(key) ?? [] : [];
    lines.set(key, [name, values.concat(value)]);
  }
  for (const [name, values] of lines.values()) {
    response.setHeader(name, values.length === 1 ? values[0] as string : values);
  }
}
