/**
 * What a user of Hono would write for items in PostgreSQL and a bucket: one query, and a signed
 * request to the store by the same method, for each request. The second argument is the database's
 * URL, the third that of the folder of the objects, and the fourth and fifth are the store's key.
 */

import { AwsClient } from "aws4fetch";
import { Pool } from "pg";
// deno-lint-ignore no-import-prefix -- a start would download what the import map has
import { Hono } from "npm:hono@4.13.19";
import { answer, QUERY, readItem } from "./items.ts";
import { serve } from "./serve.ts";

const [, connectionString, objects, accessKeyId = "", secretAccessKey = ""] = Deno.args;
const pool = new Pool({ connectionString });
const store = new AwsClient({ accessKeyId, secretAccessKey, service: "s3", region: "us-east-1" });
const app = new Hono();

app.get("/audio/:token", async (context) => {
  const { req } = context;
  const { rows: [row] } = await pool.query(`${QUERY} WHERE token = $1`, [req.param("token")]);
  const item = row && readItem({
    ...row,
    length: Number(row.length),
    publishedAt: Number(row.publishedAt),
  });
  const [status, fields] = answer(() => item, req.param("token"), req.header("if-none-match"));
  if (status !== 200) return context.body(null, status, fields);
  const { digest } = item;
  const range = req.header("range");
  const stored = await store.fetch(`${objects}/${digest.slice(0, 2)}/${digest}`, {
    method: req.method,
    headers: { "accept-encoding": "identity", ...(range === undefined ? {} : { range }) },
  });
  if (!stored.ok) return context.body(null, 503);
  const part = stored.status === 206 ? ["content-length", "content-range"] : [];
  const headers = {
    ...fields,
    ...Object.fromEntries(part.map((name) => [name, stored.headers.get(name) ?? ""])),
  };
  return new Response(stored.body, { status: stored.status, headers });
});

serve(app.fetch);
