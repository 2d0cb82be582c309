/**
 * The minimum cost of a GET from a bucket on this runtime: a response of seven fields that passes on
 * the body of a signed request. The response and the object's URL come as JSON in the first argument.
 */

import { AwsClient } from "aws4fetch";
import { ACCESS_KEY, REGION, SECRET_KEY } from "../support/s3_store.ts";

const { status, headers, path } = JSON.parse(Deno.args[0] ?? "{}") as {
  status: number;
  headers: [string, string][];
  /** The URL. */
  path: string;
};

const client = new AwsClient({
  accessKeyId: ACCESS_KEY,
  secretAccessKey: SECRET_KEY,
  region: REGION,
  service: "s3",
});

const SEVEN = ["content-type", "content-length", "content-range", "etag", "last-modified"];
const seven = headers.filter(([name]) =>
  [...SEVEN, "accept-ranges", "cache-control"].includes(name)
);

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  automaticCompression: false,
  onListen: ({ port }) => console.error(JSON.stringify({ port })),
}, async (request) => {
  const range = request.headers.get("range");
  const fields = { "Accept-Encoding": "identity", ...(range === null ? {} : { Range: range }) };
  const { body } = await fetch(await client.sign(path, { headers: fields }));
  return new Response(body, { status, headers: seven });
});
