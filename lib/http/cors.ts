/**
 * Cross-origin reads (the CORS protocol of the Fetch standard, §3.3): pages of every origin may read
 * answers, for players run wherever they are embedded; nothing here depends on who is signed in.
 */

import type { Field } from "./answer.ts";

/**
 * To be sent with every answer, errors included. The wildcard exposes every field, because no
 * request with credentials gets past the origin's wildcard (§3.3.3 and §4.10).
 */
export const CORS_FIELDS: readonly Field[] = [
  ["Access-Control-Allow-Origin", "*"],
  ["Access-Control-Expose-Headers", "*"],
];

/** What a page may set beyond the fields that need no leave: the conditions, and Range. */
const REQUEST_FIELDS =
  "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range";

/** To be sent with the answer to OPTIONS, preflight or not. */
export const PREFLIGHT_FIELDS: readonly Field[] = [
  ["Access-Control-Allow-Methods", "GET, HEAD"],
  ["Access-Control-Allow-Headers", REQUEST_FIELDS],
  ["Access-Control-Max-Age", "86400"],
];
