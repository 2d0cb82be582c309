/** Contradictions between the dates that servers announce. */

import { formatInstant, type Policy } from "../lifecycle/policy.ts";
import type { Heartbeat, RoutePolicies } from "../storage/ledger/ledger.ts";

/**
 * Describes the dates that contradict the announced ones: those of a server that may be running, and
 * a later sunset that was announced before. Each is listed once.
 *
 * @param environment The dates in the environment of a command, which may have only some.
 */
export function contradictions(
  announced: RoutePolicies,
  heartbeats: readonly Heartbeat[],
  environment: Readonly<Record<string, Partial<Policy>>> = {},
): string[] {
  const policies = Object.fromEntries(
    Object.entries(announced).map(([route, own]) => [route, { ...own, ...environment[route] }]),
  );
  const others = [
    { by: "the environment of this command", policies, mayRun: true },
    ...heartbeats.map(({ server, policies, until, end }) => {
      const by = `server ${server}, last heartbeat at ${formatInstant(until)}`;
      return { by, policies, mayRun: end === undefined };
    }),
  ];
  const lines = new Map<string, string>();
  for (const { by, policies, mayRun } of others) {
    for (const [route, policy] of Object.entries(announced)) {
      const other = policies[route];
      if (other === undefined) continue;
      const isLater = (other.sunsetAt ?? 0) > (policy.sunsetAt ?? Infinity);
      const [dates, otherDates] = [datesText(policy), datesText(other)];
      if (dates === otherDates || !mayRun && !isLater) continue;
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
