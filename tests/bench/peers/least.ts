/**
 * The least work for a correct HEAD: looks up the URL among kept responses, and reads the four
 * conditions and the User-Agent without using them.
 */

import { readExpected, serve } from "./serve.ts";

const { status, headers } = readExpected();
const kept = new Map<string, Response>();
const clients = new Map<string | null, number>();

serve(({ url, headers: fields }) => {
  const isConditional = fields.has("if-none-match") || fields.has("if-modified-since") ||
    fields.has("if-match") || fields.has("if-unmodified-since");
  if (isConditional) throw new Error("Conditions are not supported");
  const client = fields.get("user-agent");
  clients.set(client, (clients.get(client) ?? 0) + 1);
  let response = kept.get(url);
  if (response === undefined) kept.set(url, response = new Response(null, { status, headers }));
  return response;
});
