/**
 * Load on a server: a fixed number of requests over a few connections, each sending its next
 * request when the answer to the last has come. The usual tools do not serve here: several take a
 * HEAD's Content-Length for content to wait for, and then hang.
 */

/** A request, ready to be written. */
export interface PreparedRequest {
  readonly method: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Prepares a request. */
export function prepareRequest(
  method: string,
  target: string,
  fields: Readonly<Record<string, string>> = {},
): PreparedRequest {
  const lines = Object.entries({ Host: "bench", ...fields }).map(([n, v]) => `${n}: ${v}\r\n`);
  const text = `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
  return { method, bytes: new TextEncoder().encode(text) };
}

/** What to send, and what is expected of every answer. */
export interface Load {
  /** Sent in turn, again and again. */
  readonly requests: readonly PreparedRequest[];
  /** How many to send in all. */
  readonly count: number;
  /** The status of every answer. */
  readonly status: number;
}

const CONNECTIONS = 16;

/** Sends a load. @throws When an answer is not what is expected, so that no error looks fast. */
export async function sendLoad(port: number, { requests, count, status }: Load): Promise<void> {
  let sent = 0;
  const worker = async () => {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port });
    const buffer = new Uint8Array(256 * 1024);
    const expected = new TextEncoder().encode(`HTTP/1.1 ${status} `);
    while (sent < count) {
      const { method, bytes } = requests[sent++ % requests.length] as PreparedRequest;
      for (let done = 0; done < bytes.length;) done += await connection.write(bytes.subarray(done));
      await readAnswer(connection, { buffer, expected, isHead: method === "HEAD" });
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
}

interface ReadOptions {
  readonly buffer: Uint8Array<ArrayBuffer>;
  /** The beginning of the status line. */
  readonly expected: Uint8Array;
  readonly isHead: boolean;
}

async function readAnswer(
  connection: Deno.Conn,
  { buffer, expected, isHead }: ReadOptions,
): Promise<void> {
  let length = 0;
  let end = -1;
  while (end < 0) {
    const count = await connection.read(buffer.subarray(length));
    if (count === null) throw new Error("The server closed the connection");
    length += count;
    end = endOfHead(buffer, length);
  }
  if (!expected.every((byte, index) => buffer[index] === byte)) {
    throw new Error(`Unexpected answer: ${new TextDecoder().decode(buffer.subarray(0, end))}`);
  }
  if (isHead) return;
  const head = new TextDecoder().decode(buffer.subarray(0, end));
  let left = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0) - (length - end);
  while (left > 0) {
    const count = await connection.read(buffer);
    if (count === null) throw new Error("The server closed the connection");
    left -= count;
  }
}

/** Where the head ends, or -1: it ends in an empty line, and so does this much of it. */
function endOfHead(bytes: Uint8Array, length: number): number {
  for (let at = 0; at + 3 < length; at++) {
    if (bytes[at] === 13 && bytes[at + 2] === 13 && bytes[at + 1] === 10 && bytes[at + 3] === 10) {
      return at + 4;
    }
  }
  return -1;
}
