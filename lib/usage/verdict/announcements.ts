/** What sessions announce for routes, and which of them counts where they differ. */

import type { Interval } from "../../lifecycle/instant.ts";
import type { Policy, RoutePolicies } from "../../lifecycle/policy.ts";
import { policiesUnder, type RecordedHold } from "../record/holds.ts";
import { hasMounted, type Session } from "../record/records.ts";
import type { ReadSession } from "./evidence.ts";

/** Returns the policy of each route from the session that began last, preferring running processes. */
export function announcedPolicies(sessions: readonly ReadSession[]): RoutePolicies {
  // Object.assign() would take the name "__proto__" for a prototype.
  return Object.fromEntries(
    runningLast(sessions).flatMap(({ policies }) => Object.entries(policies)),
  );
}

/** Returns the latest session, preferring running processes, if there is one. */
export function latestSession(sessions: readonly ReadSession[]): ReadSession | undefined {
  return runningLast(sessions).at(-1);
}

/** Lists the sessions of running processes after all others. */
function runningLast(sessions: readonly ReadSession[]): ReadSession[] {
  return [
    ...sessions.filter(({ isOver }) => isOver),
    ...sessions.filter(({ isOver }) => !isOver),
  ];
}

/**
 * Returns the routes that running processes count; if none does, those of the session that reported
 * last.
 */
export function judgedRoutes(sessions: readonly ReadSession[]): string[] {
  const counting = sessions.filter(hasMounted);
  const running = counting.filter(({ isOver }) => !isOver);
  const last = counting.toSorted((a, b) => a.reported - b.reported).slice(-1);
  return Object.keys(announcedPolicies(running.length > 0 ? running : last));
}

/**
 * Returns the latest sunset that sessions announce for a route, under holds, if there is any.
 *
 * @param since The sessions that reported since this instant count, in milliseconds since the epoch.
 */
export function latestSunset(
  sessions: readonly ReadSession[],
  route: string,
  { since, holds }: { readonly since: number; readonly holds: readonly RecordedHold[] },
): number | undefined {
  const announced = new Map<string, Policy>();
  for (const { policies, reported, isOver } of sessions) {
    const policy = Object.hasOwn(policies, route) ? policies[route] : undefined;
    if (policy === undefined || isOver && reported < since) continue;
    announced.set(JSON.stringify(policy), policy);
  }
  const sunsets = [...announced.values()].flatMap((policy) =>
    policiesUnder({ [route]: policy }, holds)[route]?.sunsetAt ?? []
  );
  return sunsets.length === 0 ? undefined : Math.max(...sunsets);
}

/** The dates of a policy. */
export interface PolicyDates extends Pick<Policy, "deprecatedAt" | "sunsetAt"> {
  readonly brownouts: readonly Interval[];
}

/** The dates that a running process announces for routes, other than those of the report. */
export interface OtherDates {
  readonly routes: readonly string[];
  /** The dates of the report. */
  readonly announced: PolicyDates;
  readonly session: Pick<Session, "id" | "process">;
  /** The dates that the session announces. */
  readonly others: PolicyDates;
}

/** Lists each case of other dates that a running process announces, once, with its routes. */
export function otherDates(sessions: readonly ReadSession[]): OtherDates[] {
  const policies = announcedPolicies(sessions);
  const cases = new Map<string, { route: string; dates: Omit<OtherDates, "routes"> }>();
  for (const session of sessions.filter(({ isOver }) => !isOver)) {
    const { id, process } = session;
    for (const [route, policy] of Object.entries(session.policies)) {
      const announced = datesOf(policies[route] ?? policy);
      const others = datesOf(policy);
      if (JSON.stringify(announced) === JSON.stringify(others)) continue;
      const dates = { announced, session: { id, process }, others };
      cases.set(JSON.stringify([route, others]), { route, dates });
    }
  }
  const found = new Map<string, OtherDates>();
  for (const { route, dates } of cases.values()) {
    const key = JSON.stringify(dates);
    found.set(key, { ...dates, routes: [...found.get(key)?.routes ?? [], route] });
  }
  return [...found.values()];
}

/** Returns the dates of a policy. Dates that are equal are equal as JSON. */
function datesOf({ deprecatedAt, sunsetAt, brownouts }: Policy): PolicyDates {
  return {
    deprecatedAt,
    sunsetAt,
    brownouts: brownouts.map(({ start, end }) => ({ start, end })),
  };
}
