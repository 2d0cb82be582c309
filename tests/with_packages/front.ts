/**
 * `lifecycle front` on every Node: what it passes on, byte by byte, and what clients and backends send
 * that is malformed or breaks off. Nothing of it may end the program.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { FrontProcess, installedFront, NODES } from "../support/front.ts";
import { NPM } from "../support/npm.ts";
import { needing } from "../support/permissions.ts";
import { writeAll } from "../support/raw_http.ts";
import { until, within } from "../support/within.ts";

/** Options of Node. With the second, it takes more that is malformed, and sends none of it. */
const PARSERS = ["", "--insecure-http-parser"];

const test = needing(...NPM);

const installed = installedFront();

const bytesOf = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));
const textOf = (bytes: Uint8Array) =>
  Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

/** Reads until the other side closes the connection, or breaks it off. */
async function readAll(
  connection: Deno.TcpConn,
  onText: (text: string) => unknown = () => {},
): Promise<string> {
  const buffer = new Uint8Array(65_536);
  let text = "";
  try {
    for (let count; (count = await connection.read(buffer)) !== null;) {
      text += textOf(buffer.subarray(0, count));
      await onText(text);
    }
  } catch { // it was broken off, or closed here
  }
  return text;
}

function write(connection: Deno.TcpConn, text: string): Promise<void> {
  return writeAll(connection, bytesOf(text));
}

function close(connection: Deno.TcpConn): void {
  try {
    connection.close();
  } catch { // it was closed before
  }
}

/** One exchange. */
interface Row {
  readonly what: string;
  /** What the client sends. PATH is a path, old or new; and each connection is closed at its end. */
  readonly request: string;
  /** What the backend answers as soon as it has got all that it should, before it closes. */
  readonly answer?: string;
  /** What it should get. Default: anything. */
  readonly sent?: string;
  /** What it should get after its answer, until the client closes the connection. */
  readonly after?: string;
  /** What the client should get, without what a retirement adds; "" for nothing. */
  readonly got: string | RegExp;
}

const GET = "GET PATH HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const POST = GET.replace("GET", "POST").replace(
  "\r\n\r\n",
  "\r\nTransfer-Encoding: chunked\r\n\r\n",
);
const ADDED = "Lifecycle-Front: UUID\r\n";
const SENT = `GET PATH HTTP/1.1\r\nHost: a\r\n${ADDED}Connection: keep-alive\r\n\r\n`;
/** What is not sent on a connection that was idle before. */
const SENT_ONCE = SENT.replace("keep-alive", "close");
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const GOT = `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok`;
const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n" +
  "2\r\nok\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n";
const BAD_GATEWAY =
  /^HTTP\/1\.1 502 Bad Gateway\r\nContent-Type: application\/problem\+json\r\n[^]*\r\n\r\n\{.*\}$/;
const BAD_REQUEST = /^HTTP\/1\.1 400 .+\r\n[^]*Connection: close\r\n/;
const UPGRADE = "GET PATH HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n" +
  "Upgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n\r\n";
const SENT_UPGRADE = `GET PATH HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: x\r\n${ADDED}` +
  "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

const UPGRADED = "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nSet-Cookie: \xe4\r\nSet-Cookie: b\r\n" +
  "Connection: Upgrade\r\n\r\npong";
const GOT_UPGRADED = "HTTP/1.1 101 Switching Protocols\r\nSet-Cookie: \xe4\r\nSet-Cookie: b\r\n" +
  "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\npong";

/** Adds lines to a head, after its first one. */
const adding = (lines: string, head: string) => head.replace("\r\n", () => `\r\n${lines}`);

/** Adds chunks to what is sent. */
const chunked = (head: string) => head.replace(ADDED, `Transfer-Encoding: chunked\r\n${ADDED}`);

const PASSED_ON: Row[] = [
  { what: "a call", request: GET, sent: SENT, answer: OK, got: GOT },
  {
    what: "a target as it is spelled",
    request: GET.replace("PATH", "PATH/a%2F?b=//c#d"),
    sent: SENT.replace("PATH", "PATH/a%2F?b=//c#d"),
    answer: OK,
    got: GOT,
  },
  {
    what: "names, order and repeated fields of a request",
    request: adding("Cookie: a\r\nX-a: 1\r\nx-A: \xe4\r\nCookie: b\r\n", GET),
    sent: adding("Cookie: a\r\nX-a: 1\r\nx-A: \xe4\r\nCookie: b\r\n", SENT),
    answer: OK,
    got: GOT,
  },
  {
    what: "names, order and repeated fields of a response",
    request: GET,
    answer: adding("Set-Cookie: a\r\nSet-Cookie: b\r\nX-a: 1\r\nX-a: \xe4\r\n", OK),
    got: adding("Set-Cookie: a\r\nSet-Cookie: b\r\nX-a: 1\r\nX-a: \xe4\r\n", GOT),
  },
  {
    what: "those that are spelled in two ways, where nothing is retired",
    request: GET.replace("PATH", "/v2/a"),
    answer: adding("Set-Cookie: a\r\nX-a: 1\r\nset-cookie: b\r\nx-A: \xe4\r\n", OK),
    got: adding("Set-Cookie: a\r\nX-a: 1\r\nset-cookie: b\r\nx-A: \xe4\r\n", GOT),
  },
  {
    what: "nothing that is of the connection",
    request: adding("Keep-Alive: 1\r\nTE: trailers\r\nX-Mine: 1\r\nProxy-Connection: a\r\n", GET)
      .replace("close", "close, x-mine ,"),
    sent: SENT,
    answer: adding("Keep-Alive: 1\r\nX-Hop: 1\r\nConnection: close,X-Hop\r\n", OK),
    got: GOT,
  },
  {
    what: "a length, a host and other hops, even if Connection names them",
    request: adding("X-Forwarded-For: b\r\nContent-Length: 2\r\n", GET)
      .replace("close", "close, content-length, host, x-forwarded-for") + "hi",
    sent: adding("X-Forwarded-For: b\r\nContent-Length: 2\r\n", SENT_ONCE) + "hi",
    answer: OK,
    got: GOT,
  },
  {
    what: "chunks that Connection names",
    request: POST.replace("POST", "GET").replace("close", "close, transfer-encoding") +
      "2\r\nhi\r\n0\r\n\r\n",
    sent: chunked(SENT_ONCE) + "2\r\nhi\r\n0\r\n\r\n",
    answer: OK,
    got: GOT,
  },
  {
    what: "trailers of a request",
    request: adding("Trailer: X-T\r\n", POST) + "2\r\nhi\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
    sent: chunked(adding("Trailer: X-T\r\n", SENT_ONCE)).replace("GET", "POST") +
      "2\r\nhi\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
    answer: OK,
    got: GOT,
  },
  {
    what: "trailers of a response",
    request: GET,
    answer: CHUNKED,
    got:
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nConnection: close\r\n\r\n" +
      "2\r\nok\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
  },
  {
    what: "trailers that were not announced",
    request: GET,
    answer: CHUNKED.replace("Trailer: X-T\r\n", ""),
    got: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" +
      "2\r\nok\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
  },
  {
    what: "values with spaces, and without anything",
    request: GET,
    answer: adding("X-Empty:\r\nX-Spaced:   a  b \t\r\n", OK),
    got: adding("X-Empty: \r\nX-Spaced: a  b\r\n", GOT),
  },
  {
    what: "to a client of HTTP/1.0 nothing that it does not know",
    request: "GET PATH HTTP/1.0\r\n\r\n",
    sent: `GET PATH HTTP/1.1\r\n${ADDED}Host: BACKEND\r\nConnection: keep-alive\r\n\r\n`,
    answer: CHUNKED,
    got: `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok`,
  },
  {
    what: "content without a length",
    request: GET,
    answer: "HTTP/1.0 200 OK\r\n\r\nok",
    got: "HTTP/1.1 200 OK\r\nConnection: close\r\n" +
      "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
  },
  ...["GET PATH 304 Not Modified", "GET PATH 204 No Content"].map(
    (each): Row => {
      const [method = "", , ...line] = each.split(" ");
      const status = `HTTP/1.1 ${line.join(" ")}\r\n`;
      return {
        what: `the response to ${each}`,
        request: GET.replace("GET", method),
        answer: `${status}Transfer-Encoding: chunked\r\nTrailer: X-T\r\nX-A: 1\r\n\r\n`,
        got: `${status}X-A: 1\r\nConnection: close\r\n\r\n`,
      };
    },
  ),
  {
    what: "a HEAD with Transfer-Encoding alone",
    request: GET.replace("GET", "HEAD"),
    answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nX-A: 1\r\n\r\n",
    got: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nX-A: 1\r\n" +
      "Connection: close\r\n\r\n",
  },
  {
    what: "a HEAD with neither that nor a length",
    request: GET.replace("GET", "HEAD"),
    answer: "HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n",
    got: "HTTP/1.1 200 OK\r\nX-A: 1\r\nConnection: close\r\n\r\n",
  },
  ...["POST", "PUT", "DELETE", "PROPFIND"].flatMap((method) =>
    ["", "Content-Length: 0\r\n"].map((length): Row => ({
      what: `a ${method} with no content, ${length}`, // http-party/node-http-proxy#373, #960
      request: adding(length, GET).replace("GET", method),
      sent: adding(length, SENT_ONCE).replace("GET", method),
      answer: OK,
      got: GOT,
    }))
  ),
  {
    what: "the content of a DELETE",
    request: POST.replace("POST", "DELETE") + "2\r\nhi\r\n0\r\n\r\n",
    sent: chunked(SENT_ONCE).replace("GET", "DELETE") + "2\r\nhi\r\n0\r\n\r\n",
    answer: OK,
    got: GOT,
  },
  {
    what: "the Date and the reason of a response",
    request: GET,
    answer: adding("Date: Sat, 01 Jan 2000 00:00:00 GMT\r\n", OK).replace("OK", "Fin\xe9 \tby me"),
    got: adding("Date: Sat, 01 Jan 2000 00:00:00 GMT\r\n", GOT).replace("OK", "Fin\xe9 \tby me"),
  },
  {
    what: "no reason",
    request: GET,
    answer: OK.replace("200 OK", "200 "),
    got: GOT.replace("200 OK", "200 "),
  },
  {
    what: "the length of a HEAD",
    request: GET.replace("GET", "HEAD"),
    sent: SENT.replace("GET", "HEAD"),
    answer: OK.replace(/ok$/, ""),
    got: GOT.replace(/ok$/, ""),
  },
  {
    what: "content that is announced by Expect",
    request: adding("X-A: \xe4\r\nExpect: 100-continue\r\nContent-Length: 2\r\n", GET) + "hi",
    sent: adding("X-A: \xe4\r\nExpect: 100-continue\r\nContent-Length: 2\r\n", SENT_ONCE) + "hi",
    answer: `HTTP/1.1 100 Continue\r\n\r\n${OK}`,
    got: `HTTP/1.1 100 Continue\r\n\r\n${GOT}`,
  },
  {
    what: "an Expect that the backend does not know",
    request: adding("Expect: 100-continue\r\nContent-Length: 2\r\n", GET) + "hi",
    sent: adding("Expect: 100-continue\r\nContent-Length: 2\r\n", SENT_ONCE) + "hi",
    answer: OK,
    got: GOT,
  },
  {
    what: "no 100 to HTTP/1.0",
    request: "POST PATH HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
    answer: `HTTP/1.1 100 Continue\r\n\r\n${OK}`,
    got: GOT,
  },
  {
    what: "what follows informational responses",
    request: GET,
    answer:
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${OK}`,
    got: GOT,
  },
  {
    what: "an unknown status, without its reason",
    request: GET,
    answer: OK.replace("200 OK", "999 O\x01K"),
    got: GOT.replace("200 OK", "999 unknown"),
  },
  {
    what: "a length after more than 2,000 fields",
    request: adding("a:\r\n".repeat(2_100) + "Content-Length: 2\r\n", GET) + "hi",
    sent: adding("a: \r\n".repeat(2_100) + "Content-Length: 2\r\n", SENT_ONCE) + "hi",
    answer: OK,
    got: GOT,
  },
  {
    what: "more than 2,000 fields of a response",
    request: GET,
    answer: adding("a: \r\n".repeat(2_500), OK),
    got: adding("a: \r\n".repeat(2_500), GOT),
  },
  {
    what: "a WebSocket, both ways",
    request: `${UPGRADE}ping`,
    sent: SENT_UPGRADE,
    after: "ping",
    answer: UPGRADED,
    got: GOT_UPGRADED,
  },
  {
    what: "the refusal of a WebSocket",
    request: UPGRADE,
    sent: SENT_UPGRADE,
    answer: OK.replace("200 OK", "403 Forbidden"),
    got: GOT.replace("200 OK", "403 Forbidden"),
  },
  ...["POST h2c", "POST websocket", "GET websocket"].map((each): Row => ({
    what: `content with Upgrade: ${each}, without that`,
    request:
      `${
        each.split(" ")[0]
      } PATH HTTP/1.1\r\nContent-Length: 2\r\nHost: a\r\nHTTP2-Settings: x\r\n` +
      `Connection: Upgrade, HTTP2-Settings\r\nUpgrade: ${each.split(" ")[1]}\r\n\r\nhi`,
    sent: adding("Content-Length: 2\r\n", SENT_ONCE) + "hi",
    answer: OK,
    got: GOT.replace("close", "keep-alive\r\nKeep-Alive: timeout=75"),
  })),
];

const MALFORMED: Row[] = [
  { what: "a field of a request", request: adding("X-A: a\x01b\r\n", GET), got: BAD_REQUEST },
  { what: "a name in a request", request: adding("User Agent: a\r\n", GET), got: BAD_REQUEST },
  {
    what: "a trailer of a request",
    request: `${POST}0\r\nX-T: a\x01b\r\n\r\n`,
    answer: OK,
    got: /^HTTP\/1\.1 (?:400 Bad Request|200 OK)\r\n/,
  },
  {
    what: "Trailer without chunks",
    request: adding("Trailer: X-T\r\n", GET),
    sent: SENT,
    answer: adding("Trailer: X-T\r\n", OK),
    got: GOT,
  },
  { what: "a target", request: GET.replace("PATH", "PATH \x01"), got: BAD_REQUEST },
  { what: "a request", request: "\x16\x03\x01PATH\r\n\r\n", got: BAD_REQUEST },
  {
    what: "a head of 100 kB",
    request: adding(`X-A: ${"a".repeat(100_000)}\r\n`, GET),
    got: /^(?:HTTP\/1\.1 431 [^]*)?$/, // Node resets the connection, which can overtake it
  },
  { what: "an expectation", request: adding("Expect: more\r\n", GET), got: /^HTTP\/1\.1 417 / },
  { what: "CONNECT", request: GET.replace("GET PATH", "CONNECT a:1"), got: "" },
  { what: "a field of an upgrade", request: adding("X-A: \x01\r\n", UPGRADE), got: BAD_REQUEST },
  { what: "no response", request: GET, answer: "", got: BAD_GATEWAY },
  { what: "no response to an upgrade", request: UPGRADE, answer: "", got: BAD_GATEWAY },
  ...["000", "099", "199", "1000", "20", "OK"].map((status): Row => ({
    what: `status ${status}`,
    request: GET,
    answer: OK.replace("200", status),
    got: BAD_GATEWAY,
  })),
  { what: "a response", request: GET, answer: "SSH-2.0\r\n\r\n", got: BAD_GATEWAY },
  {
    what: "a field of a response",
    request: GET,
    answer: adding("X-A: a\x01b\r\n", OK),
    got: BAD_GATEWAY,
  },
  {
    what: "a head of a response of 100 kB",
    request: GET,
    answer: adding(`X-A: ${"a".repeat(100_000)}\r\n`, OK),
    got: BAD_GATEWAY,
  },
  {
    what: "two lengths",
    request: GET,
    answer: adding("Content-Length: 3\r\n", OK),
    got: BAD_GATEWAY,
  },
  {
    what: "a length beside chunks",
    request: GET,
    answer: adding("Transfer-Encoding: chunked\r\n", OK),
    got: BAD_GATEWAY,
  },
  { what: "two Host fields", request: adding("Host: a\r\n", GET), got: BAD_REQUEST },
  { what: "no Host field", request: GET.replace("Host: a\r\n", ""), got: BAD_REQUEST },
  {
    what: "a length and chunks in a request",
    request: adding("Content-Length: 2\r\n", POST) + "0\r\n\r\n",
    got: BAD_REQUEST,
  },
  {
    what: "an upgrade that was not asked for",
    request: GET,
    answer: "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n",
    got: BAD_GATEWAY,
  },
  {
    what: "a field of an upgraded response",
    request: UPGRADE,
    answer: "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: a\r\nX-A: \x01\r\n\r\n",
    got: /^HTTP\/1\.1 (?:101|502) /,
  },
  {
    what: "less content than was announced",
    request: GET,
    answer: OK.replace(": 2", ": 20"),
    got: GOT.replace(": 2", ": 20"),
  },
  {
    what: "a chunk",
    request: GET,
    answer: CHUNKED.replace("0\r\n", "?\r\n"),
    got: /Transfer-Encoding: chunked\r\n[^]*\r\n\r\n2\r\nok\r\n$/,
  },
  {
    what: "no last chunk",
    request: GET,
    answer: CHUNKED.replace(/0\r\nX-T[^]*/, ""),
    got: /Transfer-Encoding: chunked\r\n[^]*\r\n\r\n2\r\nok\r\n$/,
  },
  {
    what: "a trailer of a response",
    request: GET,
    answer: CHUNKED.replace("X-T: 1", "X-T: \x01"),
    got: /Transfer-Encoding: chunked\r\n[^]*\r\n\r\n2\r\nok\r\n(?:0\r\n[^]*)?$/,
  },
];

/** What a retirement adds. */
const ADDITIONS =
  /^(?:Deprecation|Sunset|Link|Access-Control-Expose-Headers|Cache-Control): .*\r\n/gm;

/** The id of a proxy, which is random. */
const ID = /(?<=Lifecycle-Front: )[\da-f-]{36}/;

/** A backend, which gives one answer at a time. */
class Backend implements AsyncDisposable {
  /** What is answered, once so many bytes of a request have come, and whether more may come. */
  answer: { text: string | Promise<string>; length: number; isKept: boolean } = {
    text: "",
    length: 0,
    isKept: false,
  };
  /** What the last connection has got. */
  received = "";
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #connections = new Set<Promise<unknown>>();
  readonly #accepting = this.#accept();

  get address(): string {
    return `127.0.0.1:${this.#listener.addr.port}`;
  }

  async #accept(): Promise<void> {
    for await (const connection of this.#listener) this.#connections.add(this.#serve(connection));
  }

  async #serve(connection: Deno.TcpConn): Promise<void> {
    const { text, length, isKept } = this.answer;
    let isAnswered = false;
    this.received = "";
    await readAll(connection, async (received) => {
      this.received = received;
      if (isAnswered || received.length < length || !received.includes("\r\n\r\n")) return;
      isAnswered = true;
      await write(connection, await text);
      if (!isKept) close(connection);
    });
    close(connection);
  }

  /** Waits for the end of all connections so far. */
  async rest(): Promise<void> {
    await within("the end of connections", Promise.all(this.#connections));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#accepting;
    await this.rest();
  }
}

/** A proxy in front of a backend. */
interface Front {
  readonly port: number;
  readonly backend: Backend;
}

/** Starts the proxy on a Node, and uses it. It must neither end nor complain of itself. */
async function withFront(
  node: string,
  parser: string,
  use: (front: Front) => Promise<void>,
): Promise<void> {
  await using backend = new Backend();
  const { folder } = installed();
  const upstream = `http://${backend.address}`;
  await using front = await FrontProcess.start({ upstream }, {
    ...{ folder, node },
    flags: parser === "" ? [] : [parser],
  });
  await use({ port: front.port, backend });
  assert(!front.hasEnded, front.log);
  const errors = front.events("error").filter(({ status }) => status !== 502);
  assertEquals(errors, []);
  await front.stop();
}

/** Sends a request, and returns what the client got until its connection was closed. */
async function send(
  { port }: Front,
  request: string,
  onText: (text: string, client: Deno.TcpConn) => unknown = () => {},
): Promise<string> {
  const client = await Deno.connect({ hostname: "127.0.0.1", port });
  const reading = readAll(client, (text) => onText(text, client));
  await write(client, request).catch(() => {}); // it may be refused before its end
  const text = await within(`the response to ${JSON.stringify(request.slice(0, 200))}`, reading);
  close(client);
  return text;
}

/** What the client sends, and what it gets before it leaves, whatever would still come. */
const LEFT: readonly { request: string; answer: string; got: string }[] = [
  { request: GET, answer: "", got: "" },
  { request: GET, answer: OK.replace(/ok$/, ""), got: GOT.replace(/ok$/, "") }, // no content yet
  { request: GET, answer: OK.replace(": 2", ": 20"), got: GOT.replace(": 2", ": 20") },
  {
    request: adding("Content-Length: 20\r\n", GET.replace("GET", "POST")) + "hi",
    answer: "",
    got: "",
  },
  { request: UPGRADE, answer: UPGRADED, got: GOT_UPGRADED },
  { request: UPGRADE, answer: "", got: "" },
];

/** Two requests on one connection: the first is answered before all of its content has come. */
async function checkEarlyAnswer(front: Front): Promise<void> {
  const content = "a".repeat(3_000_000);
  const first = GET.replace("GET PATH", "POST /v2/a").replace("close", "keep-alive") //
    .replace("Host", `Content-Length: ${content.length}\r\nHost`);
  const text = adding("Connection: close\r\n", OK.replace("200", "413"));
  front.backend.answer = { text, length: 0, isKept: true };
  const got = await send(front, first + content + GET.replace("PATH", "/v2/a"));
  assertEquals([...got.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status), [
    "413",
    "413",
  ]);
  await front.backend.rest();
}

/** A client that resets its connection before its upgrade is answered: it has not read all of it. */
async function checkReset({ port, backend }: Front, late: string): Promise<void> {
  backend.answer = { text: OK, length: 0, isKept: false };
  const client = await Deno.connect({ hostname: "127.0.0.1", port });
  await write(client, GET.replace("PATH", "/v2/a").replace("close", "keep-alive"));
  await client.read(new Uint8Array(1));
  await backend.rest();
  const answer = Promise.withResolvers<string>();
  backend.answer = { text: answer.promise, length: 0, isKept: false };
  backend.received = "";
  await write(client, UPGRADE.replace("PATH", "/v2/a"));
  await until("the upgrade", () => backend.received.includes("\r\n\r\n"));
  close(client);
  answer.resolve(late); // which is written to the connection that was reset
  await backend.rest();
}

test("front passes on what it should, and survives the rest", async (t) => {
  for (const version of NODES) {
    for (const parser of PARSERS) {
      await t.step(`Node ${version} ${parser}`, () =>
        withFront(version, parser, async (front) => {
          const malformed = MALFORMED.map((row): Row => {
            return parser === "" ? row : { ...row, got: /^HTTP\/1\.1 \d{3} |^$/ };
          });
          for (const row of [...PASSED_ON, ...malformed]) {
            const paths = row.request.includes("PATH") ? ["/v1/a", "/v2/a"] : ["/v2/a"];
            for (const path of paths) await check(front, row, path);
          }
          for (const left of LEFT) {
            for (const path of ["/v1/a", "/v2/a"]) await checkLeft(front, left, path);
          }
          for (const late of [OK, UPGRADED]) await checkReset(front, late);
          await checkEarlyAnswer(front);
        }));
    }
  }
});

/** Checks that the backend is told of a client that leaves. */
async function checkLeft(
  front: Front,
  { request, answer, got }: typeof LEFT[number],
  path: string,
): Promise<void> {
  const { port, backend } = front;
  backend.answer = { text: answer, length: 0, isKept: true };
  backend.received = "";
  const client = await Deno.connect({ hostname: "127.0.0.1", port });
  let text = "";
  const reading = readAll(client, (all) => text = all.replaceAll(ADDITIONS, ""));
  await write(client, request.replace("PATH", path));
  await until(`what comes of ${request}`, () => backend.received !== "" && text === got);
  close(client);
  await reading;
  await backend.rest();
}

/** Checks one exchange with a path. */
async function check(front: Front, row: Row, path: string): Promise<void> {
  const { backend } = front;
  const at = (text: string) => text.replace("PATH", path).replace("BACKEND", backend.address);
  const [method = ""] = row.request.split(" ");
  const sent = row.sent && at(row.sent).replace(/^GET/, method);
  const isKept = row.after !== undefined;
  const length = sent?.replace("UUID", crypto.randomUUID()).length ?? 0;
  backend.answer = { text: row.answer ?? "", length, isKept };
  const all = await send(front, at(row.request), (text, client) => {
    if (text.replaceAll(ADDITIONS, "") === row.got) close(client); // which may be kept open
  });
  const got = all.replaceAll(ADDITIONS, "");
  const note = `${row.what}, ${path}`;
  if (typeof row.got === "string") assertEquals(got, row.got, note);
  else assertMatch(got, row.got, note);
  await backend.rest();
  const received = backend.received.replace(ID, "UUID");
  if (sent !== undefined) assertEquals(received, sent + (row.after ?? ""), note);
  const isOwn = row.got === BAD_REQUEST || !/^HTTP\/1\.1 (?!4)/.test(got); // Node's, and no call
  if (!isOwn) assertEquals(/^Deprecation/m.test(all), path.startsWith("/v1"), note);
}
