/**
 * The fields that announce a retirement.
 */

import type { Field } from "../http/answer.ts";
import { formatHttpDate } from "../http/http_date.ts";
import type { Policy } from "./policy.ts";

/**
 * The fields that announce a retirement: Deprecation (RFC 9745), Sunset (RFC 8594), and Link
 * (RFC 8288) with the relations `successor-version` (RFC 5829), `deprecation` and `sunset`.
 *
 * @param successor The URL reference of what replaces the very thing asked for, if known.
 */
export function announcementFields(policy: Policy, successor?: string): Field[] {
  const { deprecatedAt, sunsetAt, documentation } = policy;
  const links = [
    ...(successor === undefined ? [] : [`<${successor}>; rel="successor-version"`]),
    ...(documentation === undefined ? [] : [`<${documentation}>; rel="deprecation"`]),
    ...(documentation === undefined || sunsetAt === undefined
      ? []
      : [`<${documentation}>; rel="sunset"`]),
  ];
  return [
    ["Deprecation", `@${deprecatedAt / 1000}`],
    ...(sunsetAt === undefined ? [] : [["Sunset", formatHttpDate(sunsetAt)] as const]),
    ...(links.length === 0 ? [] : [["Link", links.join(", ")] as const]),
  ];
}
