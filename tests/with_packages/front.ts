/**
 * `lifecycle front` on every Node: what it passes on, byte by byte, and what clients and backends send
 * that is malformed or breaks off. Nothing of it may end the program.
 */

import { assert, assertEquals, assertMatch } from "@std/assert";
import { FrontProcess, NODES, OK, test } from "../support/front.ts";
import { sideBySide } from "../support/side_by_side.ts";
import { HandBackend, Wire } from "../support/wire.ts";
import { until } from "../support/within.ts";

/** Options of Node. With the second, it takes more that is malformed, and sends none of it. */
const PARSERS: string[][] = [[], ["--insecure-http-parser"]];

/** One exchange. */
interface Row {
  readonly what: string;
  /**
   * What the client sends; by default, a GET. PATH is a path, old or new; and each connection is closed
   * at its end.
   */
  readonly request?: string;
  /** What the backend answers as soon as it has got all that it should, before it closes: 200. */
  readonly answer?: string;
  /** What it should get. Default: anything. */
  readonly sent?: string;
  /** What it should get after its answer, until the client closes the connection. */
  readonly after?: string;
  /** What the client should get, without what a retirement adds; "" for nothing. By default, a 200. */
  readonly got?: string | RegExp;
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
  { what: "a call", sent: SENT },
  {
    what: "a target as it is spelled",
    request: GET.replace("PATH", "PATH/a%2F?b=//c#d"),
    sent: SENT.replace("PATH", "PATH/a%2F?b=//c#d"),
  },
  {
    what: "names, order and repeated fields of a request",
    request: adding("Cookie: a\r\nX-a: 1\r\nx-A: \xe4\r\nCookie: b\r\n", GET),
    sent: adding("Cookie: a\r\nX-a: 1\r\nx-A: \xe4\r\nCookie: b\r\n", SENT),
  },
  {
    what: "names, order and repeated fields of a response",
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
  },
  {
    what: "a length, a host and other hops, even if Connection names them",
    request: adding("X-Forwarded-For: b\r\nContent-Length: 2\r\n", GET)
      .replace("close", "close, content-length, host, x-forwarded-for") + "hi",
    sent: adding("X-Forwarded-For: b\r\nContent-Length: 2\r\n", SENT_ONCE) + "hi",
  },
  {
    what: "chunks that Connection names",
    request: POST.replace("POST", "GET").replace("close", "close, transfer-encoding") +
      "2\r\nhi\r\n0\r\n\r\n",
    sent: chunked(SENT_ONCE) + "2\r\nhi\r\n0\r\n\r\n",
  },
  {
    what: "trailers of a request",
    request: adding("Trailer: X-T\r\n", POST) + "2\r\nhi\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
    sent: chunked(adding("Trailer: X-T\r\n", SENT_ONCE)).replace("GET", "POST") +
      "2\r\nhi\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
  },
  {
    what: "trailers of a response",
    answer: CHUNKED,
    got:
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nConnection: close\r\n\r\n" +
      "2\r\nok\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
  },
  {
    what: "trailers that were not announced",
    answer: CHUNKED.replace("Trailer: X-T\r\n", ""),
    got: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" +
      "2\r\nok\r\n0\r\nX-T: 1\r\nx-t: 2\r\n\r\n",
  },
  {
    what: "values with spaces, and without anything",
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
    answer: "HTTP/1.0 200 OK\r\n\r\nok",
    got: "HTTP/1.1 200 OK\r\nConnection: close\r\n" +
      "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
  },
  ...["304 Not Modified", "204 No Content"].map((line): Row => ({
    what: `a response without content, ${line}`,
    answer: `HTTP/1.1 ${line}\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nX-A: 1\r\n\r\n`,
    got: `HTTP/1.1 ${line}\r\nX-A: 1\r\nConnection: close\r\n\r\n`,
  })),
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
    }))
  ),
  {
    what: "the content of a DELETE",
    request: POST.replace("POST", "DELETE") + "2\r\nhi\r\n0\r\n\r\n",
    sent: chunked(SENT_ONCE).replace("GET", "DELETE") + "2\r\nhi\r\n0\r\n\r\n",
  },
  {
    what: "the Date and the reason of a response",
    answer: adding("Date: Sat, 01 Jan 2000 00:00:00 GMT\r\n", OK).replace("OK", "Fin\xe9 \tby me"),
    got: adding("Date: Sat, 01 Jan 2000 00:00:00 GMT\r\n", GOT).replace("OK", "Fin\xe9 \tby me"),
  },
  {
    what: "no reason",
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
  },
  {
    what: "no 100 to HTTP/1.0",
    request: "POST PATH HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
    answer: `HTTP/1.1 100 Continue\r\n\r\n${OK}`,
  },
  {
    what: "what follows informational responses",
    answer:
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${OK}`,
  },
  {
    what: "an unknown status, without its reason",
    answer: OK.replace("200 OK", "999 O\x01K"),
    got: GOT.replace("200 OK", "999 unknown"),
  },
  {
    what: "a length after more than 2,000 fields",
    request: adding("a:\r\n".repeat(2_100) + "Content-Length: 2\r\n", GET) + "hi",
    sent: adding("a: \r\n".repeat(2_100) + "Content-Length: 2\r\n", SENT_ONCE) + "hi",
  },
  {
    what: "more than 2,000 fields of a response",
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
    got: GOT.replace("close", "keep-alive\r\nKeep-Alive: timeout=75"),
  })),
];

/** Requests that Node refuses itself. */
const BAD_REQUESTS = {
  "a field of a request": adding("X-A: a\x01b\r\n", GET),
  "a name in a request": adding("User Agent: a\r\n", GET),
  "a target": GET.replace("PATH", "PATH \x01"),
  "a request": "\x16\x03\x01PATH\r\n\r\n",
  "a field of an upgrade": adding("X-A: \x01\r\n", UPGRADE),
  "two Host fields": adding("Host: a\r\n", GET),
  "no Host field": GET.replace("Host: a\r\n", ""),
  "a length and chunks in a request": adding("Content-Length: 2\r\n", POST) + "0\r\n\r\n",
};

/** Answers of which nothing is passed on. */
const BAD_ANSWERS = {
  "no response": "",
  ...Object.fromEntries(
    ["000", "099", "199", "1000", "20", "OK"]
      .map((status) => [`status ${status}`, OK.replace("200", status)]),
  ),
  "a response": "SSH-2.0\r\n\r\n",
  "a field of a response": adding("X-A: a\x01b\r\n", OK),
  "a head of a response of 100 kB": adding(`X-A: ${"a".repeat(100_000)}\r\n`, OK),
  "two lengths": adding("Content-Length: 3\r\n", OK),
  "a length beside chunks": adding("Transfer-Encoding: chunked\r\n", OK),
  "an upgrade that was not asked for":
    "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: a\r\n\r\n",
};

const MALFORMED: Row[] = [
  ...Object.entries(BAD_REQUESTS).map(([what, request]) => ({ what, request, got: BAD_REQUEST })),
  ...Object.entries(BAD_ANSWERS).map(([what, answer]) => ({ what, answer, got: BAD_GATEWAY })),
  { what: "no response to an upgrade", request: UPGRADE, answer: "", got: BAD_GATEWAY },
  {
    what: "a trailer of a request",
    request: `${POST}0\r\nX-T: a\x01b\r\n\r\n`,
    got: /^HTTP\/1\.1 (?:400 Bad Request|200 OK)\r\n/,
  },
  {
    what: "Trailer without chunks",
    request: adding("Trailer: X-T\r\n", GET),
    sent: SENT,
    answer: adding("Trailer: X-T\r\n", OK),
  },
  {
    what: "a head of 100 kB",
    request: adding(`X-A: ${"a".repeat(100_000)}\r\n`, GET),
    got: /^(?:HTTP\/1\.1 431 [^]*)?$/, // Node resets the connection, which can overtake it
  },
  { what: "an expectation", request: adding("Expect: more\r\n", GET), got: /^HTTP\/1\.1 417 / },
  { what: "CONNECT", request: GET.replace("GET PATH", "CONNECT a:1"), got: "" },
  {
    what: "a field of an upgraded response",
    request: UPGRADE,
    answer: "HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: a\r\nX-A: \x01\r\n\r\n",
    got: /^HTTP\/1\.1 (?:101|502) /,
  },
  {
    what: "less content than was announced",
    answer: OK.replace(": 2", ": 20"),
    got: GOT.replace(": 2", ": 20"),
  },
  ...[CHUNKED.replace("0\r\n", "?\r\n"), CHUNKED.replace(/0\r\nX-T[^]*/, "")].map((answer) => ({
    what: "a chunk that is malformed, or missing",
    answer,
    got: /Transfer-Encoding: chunked\r\n[^]*\r\n\r\n2\r\nok\r\n$/,
  })),
  {
    what: "a trailer of a response",
    answer: CHUNKED.replace("X-T: 1", "X-T: \x01"),
    got: /Transfer-Encoding: chunked\r\n[^]*\r\n\r\n2\r\nok\r\n(?:0\r\n[^]*)?$/,
  },
];

/** What a retirement adds. */
const ADDITIONS =
  /^(?:Deprecation|Sunset|Link|Access-Control-Expose-Headers|Cache-Control): .*\r\n/gm;

/** The id of a proxy, which is random. */
const ID = /(?<=Lifecycle-Front: )[\da-f-]{36}/;

/** A proxy, and what a backend behind it does with the next connection. */
interface Scene {
  readonly front: FrontProcess;
  readonly backend: HandBackend;
  /** What it answers, once so many bytes of a request have come, and whether more may come. */
  answer: { text: string | Promise<string>; length?: number; isKept?: boolean };
  /** What the last connection has got. */
  received: string;
}

/** Starts the proxy on a Node, and uses it. It must neither end nor complain of itself. */
async function withFront(
  node: string,
  flags: readonly string[],
  use: (scene: Scene) => Promise<void>,
): Promise<void> {
  await using backend = new HandBackend(async (wire) => {
    const { text, length = 0, isKept } = scene.answer;
    const isWhole = (text: string) => text.length >= length && text.includes("\r\n\r\n");
    scene.received = await wire.all(isWhole);
    await wire.write(await text);
    if (isKept) scene.received += await wire.all();
  });
  await using front = await FrontProcess.start({ upstream: backend.url }, { node, flags });
  const scene: Scene = { front, backend, answer: { text: "" }, received: "" };
  await use(scene);
  assert(!front.hasEnded, front.log);
  assertEquals(front.events("error").filter(({ status }) => status !== 502), []);
  await front.stop();
}

const withoutAdditions = (text: string) => text.replaceAll(ADDITIONS, "");

/** Sends a request, and returns what the client got until it was enough, or all. */
async function send(
  { front }: Scene,
  request: string,
  isEnough?: (text: string) => boolean,
): Promise<string> {
  using client = await Wire.to(front.port);
  const sending = client.write(request).catch(() => {}); // it may be refused before its end
  const got = await client.all(isEnough);
  client[Symbol.dispose]();
  await sending;
  return got;
}

/** What the client sends, and what it gets before it leaves, whatever would still come. */
const LEFT: readonly (readonly [request: string, answer: string, got: string])[] = [
  [GET, "", ""],
  [GET, OK.replace(/ok$/, ""), GOT.replace(/ok$/, "")], // no content yet
  [GET, OK.replace(": 2", ": 20"), GOT.replace(": 2", ": 20")],
  [adding("Content-Length: 20\r\n", GET.replace("GET", "POST")) + "hi", "", ""],
  [UPGRADE, UPGRADED, GOT_UPGRADED],
  [UPGRADE, "", ""],
];

/** Two requests on one connection: the first is answered before all of its content has come. */
async function checkEarlyAnswer(scene: Scene): Promise<void> {
  const content = "a".repeat(3_000_000);
  const first = GET.replace("GET PATH", "POST /v2/a").replace("close", "keep-alive") //
    .replace("Host", `Content-Length: ${content.length}\r\nHost`);
  const text = adding("Connection: close\r\n", OK.replace("200", "413"));
  scene.answer = { text, isKept: true };
  const got = await send(scene, first + content + GET.replace("PATH", "/v2/a"));
  const statuses = [...got.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
  assertEquals(statuses, ["413", "413"]);
  await scene.backend.rest();
}

/** A client that resets its connection before its upgrade is answered: it has not read all of it. */
async function checkReset(scene: Scene, late: string): Promise<void> {
  const { front, backend } = scene;
  scene.answer = { text: OK };
  using client = await Wire.to(front.port);
  await client.write(GET.replace("PATH", "/v2/a").replace("close", "keep-alive"));
  await client.connection.read(new Uint8Array(1));
  await backend.rest();
  const answer = Promise.withResolvers<string>();
  scene.answer = { text: answer.promise };
  scene.received = "";
  await client.write(UPGRADE.replace("PATH", "/v2/a"));
  await until("the upgrade", () => scene.received !== "");
  client[Symbol.dispose]();
  answer.resolve(late); // which is written to the connection that was reset
  await backend.rest();
}

test("front passes on what it should, and survives the rest", () =>
  sideBySide(
    NODES.flatMap((node) =>
      PARSERS.map((flags) => [`Node ${node} ${flags}`, node, flags] as const)
    ),
    ([, node, flags]) =>
      withFront(node, flags, async (scene) => {
        const malformed = MALFORMED.map((row): Row =>
          flags.length === 0 ? row : { ...row, got: /^HTTP\/1\.1 \d{3} |^$/ }
        );
        for (const row of [...PASSED_ON, ...malformed]) {
          const paths = (row.request ?? GET).includes("PATH") ? ["/v1/a", "/v2/a"] : ["/v2/a"];
          for (const path of paths) await check(scene, row, path);
        }
        for (const left of LEFT) {
          for (const path of ["/v1/a", "/v2/a"]) await checkLeft(scene, left, path);
        }
        for (const late of [OK, UPGRADED]) await checkReset(scene, late);
        await checkEarlyAnswer(scene);
      }),
  ));

/** Checks that the backend is told of a client that leaves. */
async function checkLeft(
  scene: Scene,
  [request, text, got]: typeof LEFT[number],
  path: string,
): Promise<void> {
  scene.answer = { text, isKept: true };
  scene.received = "";
  using client = await Wire.to(scene.front.port);
  await client.write(request.replace("PATH", path));
  await until(`the request ${request}`, () => scene.received !== "");
  if (got !== "") await client.all((text) => withoutAdditions(text) === got);
  client[Symbol.dispose]();
  await scene.backend.rest();
}

/** Checks one exchange with a path. */
async function check(scene: Scene, row: Row, path: string): Promise<void> {
  const { what, request = GET, answer = OK, after, got: expected = GOT } = row;
  const { backend } = scene;
  const at = (text: string) =>
    text.replace("PATH", path).replace("BACKEND", backend.url.replace("http://", ""));
  const [method = ""] = request.split(" ");
  const sent = row.sent && at(row.sent).replace(/^GET/, method);
  const length = sent?.replace("UUID", crypto.randomUUID()).length ?? 0;
  scene.answer = { text: answer, length, isKept: after !== undefined };
  // Which may be kept open.
  const all = await send(scene, at(request), (text) => withoutAdditions(text) === expected);
  const got = withoutAdditions(all);
  const note = `${what}, ${path}`;
  if (typeof expected === "string") assertEquals(got, expected, note);
  else assertMatch(got, expected, note);
  await backend.rest();
  const received = scene.received.replace(ID, "UUID");
  if (sent !== undefined) assertEquals(received, sent + (after ?? ""), note);
  const isOwn = expected === BAD_REQUEST || !/^HTTP\/1\.1 (?!4)/.test(got); // Node's, and no call
  if (!isOwn) assertEquals(/^Deprecation/m.test(all), path.startsWith("/v1"), note);
}
