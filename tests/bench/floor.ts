/**
 * The floor: a server that answers every request with a clone of one constant response. Nothing on
 * this runtime answers with these fields for less. The fields come as JSON in the first argument.
 */

const headers: [string, string][] = JSON.parse(Deno.args[0] ?? "[]");
const constant = new Response(null, { headers });

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  automaticCompression: false,
  onListen: ({ port }) => console.error(JSON.stringify({ port })),
}, () => constant.clone());
