/**
 * A server that answers every request with the body of a signed request to a bucket, in a response
 * of seven fields. The response and the object's URL come as JSON in the first argument.
 */

import { AwsClient } from "aws4fetch";
import { ACCESS_KEY, REGION, SECRET_KEY } from "../support/s3_store.ts";

const { status, headers, path } = JSON.parse(Deno.args[0] ?? "{}") as {
  status: number;
  headers: [string, string][];
  /** The URL. */
  path: string;
};

const SEVEN = ["content-type", "content-length", "content-range", "etag", "last-modified"];
const seven = headers.filter(([name]) =>
  [...SEVEN, "accept-ranges", "cache-control"].includes(name)
);

/** A body that can be empty. */
type Body = ReadableStream<Uint8Array> | null;

/**
 * Serves.
 *
 * @param pass Returns the body to send, given the one received.
 */
export function serveFetched(pass: (body: Body) => Body): void {
  const client = new AwsClient({
    accessKeyId: ACCESS_KEY,
    secretAccessKey: SECRET_KEY,
    region: REGION,
    service: "s3",
  });
  Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    automaticCompression: false,
    onListen: ({ port }) => console.error(JSON.stringify({ port })),
  }, async (request) => {
    const range = request.headers.get("range");
    const fields = { "Accept-Encoding": "identity", ...(range === null ? {} : { Range: range }) };
    const { body } = await fetch(await client.sign(path, { headers: fields }));
    return new Response(pass(body), { status, headers: seven });
  });
}
