/**
 * What a deprecated route says of itself on every answer.
 */

import type { Field } from "../http/answer.ts";

/**
 * The fields that announce a deprecation.
 *
 * @param deprecatedAt Milliseconds since the epoch; stated in whole seconds (RFC 9745 §2.1).
 * @param successor The path that replaces this one, when it is known (RFC 5829 §3.2).
 */
export function deprecationFields(deprecatedAt: number, successor?: string): Field[] {
  const deprecation: Field = ["Deprecation", `@${Math.floor(deprecatedAt / 1000)}`];
  return successor === undefined
    ? [deprecation]
    : [deprecation, ["Link", `<${successor}>; rel="successor-version"`]];
}
