/**
 * Load on a server over a fixed number of connections. The usual tools do not work here: several
 * wait for content after a HEAD's Content-Length, and hang.
 */

import { setImmediate } from "node:timers/promises";
import type { PublishedItem } from "../../lib/storage/item.ts";
import { requestHead, writeAll } from "../support/raw_http.ts";

/** A serialized request. */
export interface PreparedRequest {
  readonly method: string;
  readonly target: string;
  /** Fields besides Host and User-Agent. */
  readonly fields: Readonly<Record<string, string>>;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Serializes a request. */
export function prepareRequest(
  method: string,
  target: string,
  fields: Readonly<Record<string, string>> = {},
): PreparedRequest {
  const bytes = requestHead(method, target, { "User-Agent": "bench/1.0", ...fields });
  return { method, target, fields, bytes };
}

/** Prepares requests for whole items. */
export function wholes(method: string, items: readonly PublishedItem[]): PreparedRequest[] {
  return items.map(({ token }) => prepareRequest(method, `/audio/${token}`));
}

/** Bytes of a part, as players request it. */
const PART = 65_536;

/** Prepares GETs of parts of an item, as many as are given, at equal distances. */
export function parts({ token, length }: PublishedItem, count: number): PreparedRequest[] {
  return Array.from({ length: count }, (_, index) => {
    const first = Math.floor(length / count) * index;
    const fields = { Range: `bytes=${first}-${first + PART - 1}` };
    return prepareRequest("GET", `/audio/${token}`, fields);
  });
}

/** What to send, and what to expect of every response. */
export interface Load {
  /** Returns the next request, given how many were sent before. */
  readonly request: (index: number) => PreparedRequest;
  /** The total number to send. */
  readonly count: number;
  /** The status of every response. */
  readonly status: number;
}

/** Sends requests in rotation. */
export function inTurn(requests: readonly PreparedRequest[], status: number, count: number): Load {
  const request = (index: number) => requests[index % requests.length] as PreparedRequest;
  return { request, status, count: Math.ceil(count) };
}

/** Connections of one load. */
const CONNECTIONS = 16;

/**
 * Sends a load: each connection sends its next request after the previous response.
 *
 * @throws When a response is not as expected, so that errors do not look fast.
 */
export async function sendLoad(port: number, { request, count, status }: Load): Promise<void> {
  let sent = 0;
  await onConnections(port, count, async (connection) => {
    while (sent < count) await connection.ask(request(sent++), status);
  });
}

/**
 * Sends a load at a fixed rate, evenly spaced, whether or not earlier responses have come.
 *
 * @param perSecond Requests a second.
 * @returns The latency of each response in milliseconds. It is counted from when the request was due,
 *   so that a server that stalls is charged for all that it kept waiting.
 * @throws When a response is not as expected.
 */
export async function sendAtRate(
  port: number,
  { request, count, status }: Load,
  perSecond: number,
): Promise<number[]> {
  const latencies: number[] = [];
  const start = performance.now();
  let sent = 0;
  await onConnections(port, count, async (connection) => {
    while (sent < count) {
      const index = sent++;
      const due = start + index * 1000 / perSecond;
      while (performance.now() < due) await setImmediate();
      await connection.ask(request(index), status);
      latencies.push(performance.now() - due);
    }
  });
  return latencies;
}

/**
 * Runs a sender on each connection. Meanwhile this process polls instead of sleeping: the system
 * charges a server on the same machine for waking a waiting client.
 */
async function onConnections(
  port: number,
  count: number,
  send: (connection: Connection) => Promise<void>,
): Promise<void> {
  let isDone = false;
  const sending = Promise.all(Array.from({ length: Math.min(count, CONNECTIONS) }, async () => {
    using connection = await Connection.open(port);
    await send(connection);
  })).finally(() => isDone = true);
  while (!isDone) await setImmediate();
  await sending;
}

/** A keep-alive connection. */
class Connection implements Disposable {
  readonly #connection: Deno.Conn;
  readonly #buffer = new Uint8Array(256 * 1024);

  private constructor(connection: Deno.Conn) {
    this.#connection = connection;
  }

  static async open(port: number): Promise<Connection> {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    connection.setNoDelay();
    return new Connection(connection);
  }

  /** Sends a request and reads the whole response. */
  async ask({ method, bytes }: PreparedRequest, status: number): Promise<void> {
    await writeAll(this.#connection, bytes);
    const buffer = this.#buffer;
    let length = 0;
    let end = -1;
    while (end < 0) {
      length += await this.#read(length);
      end = endOfHead(buffer, length);
    }
    if (statusIn(buffer) !== status) {
      throw new Error(`Unexpected response: ${new TextDecoder().decode(buffer.subarray(0, end))}`);
    }
    if (method === "HEAD") return;
    const head = new TextDecoder().decode(buffer.subarray(0, end));
    let left = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0) - (length - end);
    while (left > 0) left -= await this.#read(0);
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }

  async #read(at: number): Promise<number> {
    const count = await this.#connection.read(this.#buffer.subarray(at));
    if (count === null) throw new Error("The server closed the connection");
    return count;
  }
}

/** The status code, which stands after `HTTP/1.1 `. */
function statusIn(bytes: Uint8Array): number {
  const digit = (at: number) => (bytes[at] as number) - 48;
  return digit(9) * 100 + digit(10) * 10 + digit(11);
}

/** Returns where the head ends, or -1: it ends with an empty line, as this part does. */
function endOfHead(bytes: Uint8Array, length: number): number {
  for (let at = 0; at + 3 < length; at++) {
    if (bytes[at] === 13 && bytes[at + 2] === 13 && bytes[at + 1] === 10 && bytes[at + 3] === 10) {
      return at + 4;
    }
  }
  return -1;
}
