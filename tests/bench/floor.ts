/**
 * The floor: a server that answers every request with a clone of one constant response, whose
 * status, fields and content length are given as JSON in the first argument. A server on this
 * runtime can hardly respond for less.
 */

const { status, headers, length } = JSON.parse(Deno.args[0] ?? "{}") as {
  status: number;
  headers: [string, string][];
  length: number;
};
const content = length > 0 ? new Uint8Array(length) : null;
const constant = new Response(content, { status, headers });

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  automaticCompression: false,
  onListen: ({ port }) => console.error(JSON.stringify({ port })),
}, () => constant.clone());
