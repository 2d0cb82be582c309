/** HTTP/1.1 on a raw socket, which, unlike `fetch`, shows exactly what was sent. */

import { within } from "./within.ts";

/** A response as sent on the wire. */
export interface RawResponse {
  readonly status: number;
  /** Fields in the order received, with names in lower case. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Everything after the head, until the server closed the connection. */
  readonly content: Uint8Array;
}

/**
 * Sends one request on a new connection, and reads until the server closes it.
 *
 * @param target Put into the request line verbatim.
 */
export async function requestRaw(
  port: number,
  method: string,
  target: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<RawResponse> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = requestHead(method, target, { Connection: "close", ...fields });
  const exchange = async () => {
    await writeAll(connection, head);
    return await new Response(connection.readable).bytes();
  };
  return parseResponse(await within(`the response to ${method} ${target}`, exchange()));
}

/** Writes all bytes to a connection. */
export async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await connection.write(bytes.subarray(done));
}

/** Returns a request to send on a connection. */
export function requestHead(
  method: string,
  target: string,
  fields: Readonly<Record<string, string>> = {},
): Uint8Array<ArrayBuffer> {
  const lines = Object.entries({ Host: "test", ...fields })
    .map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
  return Uint8Array.from(head, (char) => char.charCodeAt(0)); // Latin-1
}

/** Where the head of a response ends at the latest, in bytes. */
const MAX_HEAD = 16_384;

/** Parses a whole response. Rejects chunked ones: this server states every length. */
export function parseResponse(bytes: Uint8Array): RawResponse {
  const text = Array.from(bytes.subarray(0, MAX_HEAD), (byte) => String.fromCharCode(byte)).join(
    "",
  );
  const end = text.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = text.slice(0, end).split("\r\n");
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1];
  if (end < 0 || status === undefined) throw new Error(`Not a response: ${JSON.stringify(text)}`);
  const fields = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  if (fields.some(([name]) => name === "transfer-encoding")) throw new Error("Chunked response");
  return { status: Number(status), fields, content: bytes.subarray(end + 4) };
}

/** Returns the value of a field, or `undefined`. */
export function field(response: RawResponse, name: string): string | undefined {
  return response.fields.find(([other]) => other === name)?.[1];
}
