/** Contradictions between the dates that servers announce. */

import { formatInstant } from "../http/timestamp.ts";
import type { Policy } from "../lifecycle/policy.ts";
import type { RoutePolicies, Session } from "./records.ts";

/**
 * Describes the dates that contradict the announced ones: other dates of a server that may be
 * running, and a later sunset that was announced before. Each contradiction is listed once.
 */
export function contradictions(
  announced: RoutePolicies,
  sessions: readonly Session[],
): string[] {
  const lines = new Map<string, string>();
  for (const { id, policies, reported, ended } of sessions) {
    for (const [route, policy] of Object.entries(announced)) {
      const other = policies[route];
      if (other === undefined) continue;
      const isLater = (other.sunsetAt ?? 0) > (policy.sunsetAt ?? Infinity);
      const [dates, otherDates] = [datesText(policy), datesText(other)];
      if (dates === otherDates || ended !== undefined && !isLater) continue;
      const by = `session ${id}, last report at ${formatInstant(reported)}`;
      lines.set(`${route} ${otherDates}`, `${route} announces ${dates}; but ${by}: ${otherDates}`);
    }
  }
  return [...lines.values()];
}

function datesText({ deprecatedAt, sunsetAt, brownouts }: Policy): string {
  return [
    `deprecation ${formatInstant(deprecatedAt)}`,
    sunsetAt === undefined ? "no sunset" : `sunset ${formatInstant(sunsetAt)}`,
    ...brownouts.map(({ start, end }) => `brownout ${formatInstant(start)}/${formatInstant(end)}`),
  ].join(", ");
}
