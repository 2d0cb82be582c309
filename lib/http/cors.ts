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
