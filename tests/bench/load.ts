/**
 * Load on a server over a fixed number of connections. The usual tools do not work here: several
 * wait for content after a HEAD's Content-Length, and hang.
 */

import { setImmediate } from "node:timers/promises";

/** The method under measurement. */
export const HEAD = "HEAD";

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
  const all = { Host: "bench", "User-Agent": "bench/1.0", ...fields };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
  return { method, target, fields, bytes: new TextEncoder().encode(text) };
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

/** Sends these requests in rotation. */
export function inTurn(requests: readonly PreparedRequest[]): Load["request"] {
  return (index) => requests[index % requests.length] as PreparedRequest;
}

/** How to send a load. */
export interface LoadOptions {
  /** Defaults to 16. */
  readonly connections?: number;
  /**
   * Whether this process polls instead of sleeping. The system charges a server on the same machine
   * for waking a waiting client.
   */
  readonly isAwake?: boolean;
}

/**
 * Sends a load: each connection sends its next request after the previous response.
 *
 * @throws When a response is not as expected, so that errors do not look fast.
 */
export async function sendLoad(
  port: number,
  { request, count, status }: Load,
  { connections = 16, isAwake = false }: LoadOptions = {},
): Promise<void> {
  let sent = 0;
  let isDone = false;
  const sending = Promise.all(Array.from({ length: connections }, async () => {
    using connection = await Connection.open(port);
    while (sent < count) {
      await connection.ask(request(sent++), status);
    }
  })).finally(() => isDone = true);
  while (isAwake && !isDone) await setImmediate();
  await sending;
}

/**
 * Sends a load at a fixed rate, whether or not responses keep up. Waiting for a free connection
 * counts towards a request's time: a server that stalls gets no fewer requests.
 *
 * @param rate Requests per second.
 * @returns The time of each, from when it was due to the end of its response, in milliseconds.
 */
export async function sendAtRate(
  port: number,
  { request, count, status }: Load,
  rate: number,
): Promise<number[]> {
  const times: number[] = [];
  const free = await Promise.all(Array.from({ length: 64 }, () => Connection.open(port)));
  const all = [...free];
  const due: number[] = [];
  const failures: unknown[] = [];
  let sent = 0;
  const send = async (connection: Connection, since: number): Promise<void> => {
    try {
      await connection.ask(request(sent++), status);
    } catch (error) {
      failures.push(error);
    }
    times.push(performance.now() - since);
    const next = due.shift();
    if (next === undefined) free.push(connection);
    else await send(connection, next);
  };
  const start = performance.now();
  for (let issued = 0; times.length < count && failures.length === 0;) {
    const arrived = Math.min(count, Math.floor((performance.now() - start) * rate / 1000));
    for (; issued < arrived; issued++) {
      const since = start + (issued + 1) * 1000 / rate;
      const connection = free.pop();
      if (connection === undefined) due.push(since);
      else send(connection, since);
    }
    await setImmediate(); // a timer would come up to a millisecond late
  }
  for (const connection of all) connection[Symbol.dispose]();
  if (failures.length > 0) throw failures[0];
  return times;
}

/** Clients that read a little twice a second, as over a slow network. */
export interface SlowReaders {
  /** Reads for some seconds. */
  readFor(seconds: number): Promise<void>;
  /** Hangs up. */
  close(): void;
}

/** Sends one request on each of many connections, whose content is read slowly from then on. */
export async function openSlowReaders(
  port: number,
  { bytes }: PreparedRequest,
  count: number,
): Promise<SlowReaders> {
  const buffer = new Uint8Array(4_096);
  const connections: Deno.Conn[] = [];
  while (connections.length < count) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    connections.push(connection);
    await connection.write(bytes);
    await readFrom(connection, buffer);
    const status = statusIn(buffer);
    if (status !== 200 && status !== 206) throw new Error(`Unexpected response: ${status}`);
  }
  return {
    async readFor(seconds) {
      for (let half = 0; half < 2 * seconds; half++) {
        for (const connection of connections) await readFrom(connection, buffer);
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
    },
    close() {
      for (const connection of connections) connection.close();
    },
  };
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
    for (let done = 0; done < bytes.length;) {
      done += await this.#connection.write(bytes.subarray(done));
    }
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
    if (method === HEAD || status === 304) return;
    const head = new TextDecoder().decode(buffer.subarray(0, end));
    let left = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0) - (length - end);
    while (left > 0) left -= await this.#read(0);
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }

  async #read(at: number): Promise<number> {
    return await readFrom(this.#connection, this.#buffer.subarray(at));
  }
}

async function readFrom(connection: Deno.Conn, buffer: Uint8Array): Promise<number> {
  const count = await connection.read(buffer);
  if (count === null) throw new Error("The server closed the connection");
  return count;
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
