/** The announcement of a retirement. */

import type { Field } from "../http/outcome.ts";
import { formatHttpDate } from "../http/http_date.ts";
import type { Policy } from "./policy.ts";

/**
 * Returns the fields that announce a retirement: Deprecation (RFC 9745), Sunset (RFC 8594), and
 * Link (RFC 8288) with the relations `successor-version` (RFC 5829), `deprecation` and `sunset`.
 *
 * @param successor A URL reference to the resource's replacement, if known. It is not validated.
 *
 * @example The announcement of a deprecated path
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { announcementFields, definePolicy } from "@media-head/lifecycle";
 *
 * const policy = definePolicy({ deprecatedAt: "2026-11-21", sunsetAt: "2027-06-30" });
 * assertEquals(announcementFields(policy, "/v2/songs"), [
 *   ["Deprecation", "@1795219200"],
 *   ["Sunset", "Wed, 30 Jun 2027 00:00:00 GMT"],
 *   ["Link", '</v2/songs>; rel="successor-version"'],
 * ]);
 * ```
 */
export function announcementFields(
  { deprecatedAt, sunsetAt, documentation }: Policy,
  successor?: string,
): Field[] {
  const fields: Field[] = [["Deprecation", `@${deprecatedAt / 1000}`]];
  if (sunsetAt !== undefined) fields.push(["Sunset", formatHttpDate(sunsetAt)]);
  const links: string[] = [];
  if (successor !== undefined) links.push(`<${successor}>; rel="successor-version"`);
  if (documentation !== undefined) {
    links.push(`<${documentation}>; rel="deprecation"`);
    if (sunsetAt !== undefined) links.push(`<${documentation}>; rel="sunset"`);
  }
  return links.length === 0 ? fields : [...fields, ["Link", links.join(", ")]];
}
