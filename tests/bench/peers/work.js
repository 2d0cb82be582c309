/**
 * The work that every peer does: checks a token, looks it up among those in the file named in the
 * first argument, and sends the nine fields of an item. They leave out everything else: storage,
 * the other conditions, CORS, announcing a retirement, counting.
 */

import { readFileSync } from "node:fs";

const V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const PROBLEM = { "content-type": "application/problem+json", "cache-control": "no-store" };

const items = new Map(
  JSON.parse(readFileSync(process.argv[2], "utf8")).map((item) => [item.token, item]),
);

/**
 * Answers a HEAD.
 *
 * @returns {[status: number, fields: Record<string, string>]}
 */
export function answer(token, ifNoneMatch) {
  const key = token.toLowerCase();
  if (!V4.test(key)) return [400, { ...PROBLEM, "content-length": "118" }];
  const item = items.get(key);
  if (item === undefined) return [404, { ...PROBLEM, "content-length": "78" }];
  const etag = `"${item.digest}"`;
  const validators = {
    "etag": etag,
    "last-modified": new Date(item.publishedAt).toUTCString(),
    "cache-control": "max-age=300",
  };
  if (ifNoneMatch === etag) return [304, validators];
  return [200, {
    "content-type": item.type,
    "content-disposition": `inline; filename="${item.name}"`,
    "accept-ranges": "bytes",
    "repr-digest": `sha-256=:${item.base64}:`,
    "x-content-type-options": "nosniff",
    "content-length": String(item.length),
    ...validators,
  }];
}

/** Prints the port of a peer for the bench. */
export function tell({ port }) {
  console.error(JSON.stringify({ port }));
}
