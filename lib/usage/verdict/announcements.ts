/** What sessions announce for routes, and which of them counts where they differ. */

import type { Interval } from "../../lifecycle/instant.ts";
import type { Policy, RoutePolicies } from "../../lifecycle/policy.ts";
import { hasMounted, isOpen, runningLast, type Session } from "../record/records.ts";

/**
 * Returns the policy of each route from the session that began last, preferring running servers, and
 * those that have mounted it.
 */
export function announcedPolicies(sessions: readonly Session[]): RoutePolicies {
  // Object.assign() would take the name "__proto__" for a prototype.
  const ordered = runningLast(sessions);
  return Object.fromEntries([
    ...ordered.flatMap(({ unmounted = {} }) => Object.entries(unmounted)),
    ...ordered.flatMap(({ policies }) => Object.entries(policies)),
  ]);
}

/** Returns the session that began last, preferring running servers, if there is one. */
export function latestSession(sessions: readonly Session[]): Session | undefined {
  return runningLast(sessions).at(-1);
}

/**
 * Returns the routes of open sessions, also those that are not mounted; if none is open, those of the
 * session that ended last. Sessions that have mounted no route matter only where no other has.
 */
export function judgedRoutes(sessions: readonly Session[]): string[] {
  const open = sessions.filter((session) => isOpen(session));
  const serving = open.filter(hasMounted);
  const byHeartbeat = sessions.toSorted((a, b) => a.reported - b.reported);
  const ended = [byHeartbeat.filter(hasMounted).slice(-1), byHeartbeat.slice(-1)];
  const [judged = []] = [serving, open, ...ended].filter(({ length }) => length > 0);
  return Object.keys(announcedPolicies(judged));
}

/** The dates of a policy. */
export interface PolicyDates extends Pick<Policy, "deprecatedAt" | "sunsetAt"> {
  readonly brownouts: readonly Interval[];
}

/** The dates that a running server announces for routes, other than those of the report. */
export interface OtherDates {
  readonly routes: readonly string[];
  /** The dates of the report. */
  readonly announced: PolicyDates;
  readonly session: Pick<Session, "id" | "process">;
  /** The dates that the session announces. */
  readonly others: PolicyDates;
}

/** Lists each case of other dates that a running server announces, once, with its routes. */
export function otherDates(sessions: readonly Session[]): OtherDates[] {
  const policies = announcedPolicies(sessions);
  const cases = new Map<string, { route: string; dates: Omit<OtherDates, "routes"> }>();
  for (const session of sessions.filter((session) => isOpen(session))) {
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
