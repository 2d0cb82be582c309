/**
 * The least work for a correct HEAD on this runtime: looks up the URL among kept responses, and
 * reads the four conditions and the User-Agent without using them. The response is given as in
 * floor.ts.
 */

const { status, headers } = JSON.parse(Deno.args[0] ?? "{}") as {
  status: number;
  headers: [string, string][];
};
const kept = new Map<string, Response>();
const clients = new Map<string | null, number>();

function answer({ url, headers: fields }: Request): Response {
  const isConditional = fields.has("if-none-match") || fields.has("if-modified-since") ||
    fields.has("if-match") || fields.has("if-unmodified-since");
  if (isConditional) throw new Error("Conditions are not supported");
  const client = fields.get("user-agent");
  clients.set(client, (clients.get(client) ?? 0) + 1);
  let response = kept.get(url);
  if (response === undefined) kept.set(url, response = new Response(null, { status, headers }));
  return response;
}

Deno.serve({
  hostname: "127.0.0.1",
  port: 0,
  automaticCompression: false,
  onListen: ({ port }) => console.error(JSON.stringify({ port })),
}, answer);
