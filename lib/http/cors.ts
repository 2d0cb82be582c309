/**
 * CORS (Fetch standard §3.3). Pages of any origin may read responses, because players are embedded
 * anywhere and nothing here depends on credentials.
 */

import type { Field } from "./outcome.ts";

/**
 * The fields for every response, including errors. The wildcard exposes all fields, because the
 * wildcard origin rules out requests with credentials (§3.3.3 and §4.10).
 */
export const CORS_FIELDS: readonly Field[] = [
  ["Access-Control-Allow-Origin", "*"],
  ["Access-Control-Expose-Headers", "*"],
];

/**
 * The request fields that a page may set in addition to the CORS-safelisted ones: all of them. The
 * wildcard never covers Authorization (§2.2.2). Browsers that do not know it need those that have a
 * meaning here by name.
 */
const REQUEST_FIELDS = "*, Authorization, " +
  "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range";

/** The fields for every response to OPTIONS. */
export const PREFLIGHT_FIELDS: readonly Field[] = [
  ["Access-Control-Allow-Methods", "GET, HEAD"],
  ["Access-Control-Allow-Headers", REQUEST_FIELDS],
  ["Access-Control-Max-Age", "86400"],
];
