/**
 * Cross-origin reads (the CORS protocol of the Fetch standard, §3.3): pages of every origin may read
 * answers, for players run wherever they are embedded; nothing here depends on who is signed in.
 */

import { type Answer, type Field, NO_STORE } from "./answer.ts";

/** To be sent with every answer, errors included. */
export const CORS_FIELDS: readonly Field[] = [
  ["Access-Control-Allow-Origin", "*"],
  [
    "Access-Control-Expose-Headers",
    "Deprecation, Sunset, Link, ETag, Accept-Ranges, Content-Range, Repr-Digest, Retry-After",
  ],
];

/** What a page may set beyond the fields that need no leave: the conditions, and Range. */
const REQUEST_FIELDS =
  "If-Match, If-Modified-Since, If-None-Match, If-Range, If-Unmodified-Since, Range";

/**
 * The answer to OPTIONS, preflight or not.
 *
 * @param methods What the route allows, as Allow states it.
 */
export function optionsAnswer(methods: string): Answer {
  return {
    status: 204,
    fields: [
      ["Allow", methods],
      ["Access-Control-Allow-Methods", "GET, HEAD"],
      ["Access-Control-Allow-Headers", REQUEST_FIELDS],
      ["Access-Control-Max-Age", "86400"],
      NO_STORE,
    ],
  };
}
