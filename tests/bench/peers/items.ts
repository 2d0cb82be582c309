/**
 * The work of Hono and of a bare handler for a HEAD: check the token, look it up, and send the nine
 * fields of an item. They leave out everything else: the content, the other conditions, CORS,
 * announcing a retirement, counting.
 */

import { Buffer } from "node:buffer";
import { DatabaseSync } from "node:sqlite";

/** An item, with its digest in base64, too. */
interface Item {
  readonly token: string;
  readonly type: string;
  readonly length: number;
  readonly digest: string;
  readonly base64: string;
  readonly publishedAt: number;
  readonly name: string;
}

/** Looks up an item by its token. */
type Find = (token: string) => Item | undefined;

const V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const QUERY =
  'SELECT token, type, length, digest, published_at AS "publishedAt", name FROM media_head_item';
const PROBLEM = { "content-type": "application/problem+json", "cache-control": "no-store" };

/** Keeps the last 100,000 items of a catalogue in memory, in the order of their tokens. */
export function findInMap(catalogue: string): Find {
  using database = new DatabaseSync(catalogue, { readOnly: true });
  const rows = database.prepare(`${QUERY} ORDER BY token DESC LIMIT 100000`).all();
  const items = new Map(rows.map(readItem).map((item) => [item.token, item]));
  return (token) => items.get(token);
}

/** Asks a catalogue for each item, by one prepared statement. */
export function findInSqlite(catalogue: string): Find {
  const find = new DatabaseSync(catalogue, { readOnly: true }).prepare(`${QUERY} WHERE token = ?`);
  return (token) => {
    const row = find.get(token);
    return row && readItem(row);
  };
}

export function readItem(row: Record<string, unknown>): Item {
  const base64 = Buffer.from(row["digest"] as string, "hex").toString("base64");
  return { ...row, base64 } as Item;
}

/** Answers a HEAD. */
export function answer(
  find: Find,
  token: string,
  ifNoneMatch: string | null | undefined,
): [status: 200 | 304 | 400 | 404, fields: Record<string, string>] {
  const key = token.toLowerCase();
  if (!V4.test(key)) return [400, { ...PROBLEM, "content-length": "118" }];
  const item = find(key);
  if (item === undefined) return [404, { ...PROBLEM, "content-length": "78" }];
  const validators = {
    "etag": `"${item.digest}"`,
    "last-modified": new Date(item.publishedAt).toUTCString(),
    "cache-control": "max-age=300",
  };
  if (ifNoneMatch === validators.etag) return [304, validators];
  const content = {
    "content-type": item.type,
    "content-disposition": `inline; filename="${item.name}"`,
    "accept-ranges": "bytes",
    "repr-digest": `sha-256=:${item.base64}:`,
    "x-content-type-options": "nosniff",
    "content-length": String(item.length),
  };
  return [200, { ...content, ...validators }];
}
