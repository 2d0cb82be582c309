/** Dates of a retirement that are allowed, and unlikely to be meant. */

import { DAY_MS, formatInstant } from "../http/timestamp.ts";
import type { Policy, RoutePolicies } from "../lifecycle/policy.ts";
import type { Session } from "../usage/record/records.ts";

/** The least number of days for which a sunset is announced. */
const MIN_SUNSET_DAYS = 30;

/** The number of days after which a deprecation is far away. */
const FAR_DAYS = 2 * 365;

/**
 * Says which dates are unlikely: a line for each. A date that the record has announced already is
 * left out, because a restart is no occasion to repeat it.
 *
 * @param sessions The sessions on record, in the order in which they began.
 * @param now Milliseconds since the epoch.
 */
export function unlikelyDates(
  policies: RoutePolicies,
  sessions: readonly Pick<Session, "policies">[],
  now: number,
): string[] {
  const recorded = new Map(sessions.flatMap((session) => Object.entries(session.policies)));
  const routes = new Map<string, string[]>(); // by line
  for (const [route, policy] of Object.entries(policies)) {
    for (const line of unlikelyDatesOf(policy, recorded.get(route), now)) {
      routes.set(line, [...routes.get(line) ?? [], route]);
    }
  }
  return [...routes].map(([line, routes]) => `${routes.join(" and ")}: ${line}`);
}

/** @param recorded What the record announced last. */
function unlikelyDatesOf(policy: Policy, recorded: Policy | undefined, now: number): string[] {
  const { deprecatedAt, sunsetAt, brownouts } = policy;
  const lines: string[] = [];
  const isFar = deprecatedAt - now > FAR_DAYS * DAY_MS;
  if (isFar && deprecatedAt !== recorded?.deprecatedAt) {
    lines.push(`the deprecation begins on ${formatInstant(deprecatedAt)}, years from now`);
  }
  if (sunsetAt !== undefined && sunsetAt !== recorded?.sunsetAt) {
    const sunset = `the sunset on ${formatInstant(sunsetAt)}`;
    const before = recorded?.sunsetAt;
    if (before !== undefined && sunsetAt < before) {
      lines.push(`${sunset} was announced for ${formatInstant(before)}, so it moves forward`);
    }
    if (sunsetAt - now < MIN_SUNSET_DAYS * DAY_MS) {
      lines.push(
        `${sunset} is announced for the first time, and not ${MIN_SUNSET_DAYS} days ahead`,
      );
    }
  }
  for (const { start, end } of brownouts) {
    const isRecorded = recorded?.brownouts.some((one) => one.start === start && one.end === end);
    if (isRecorded || end <= now) continue;
    const brownout = `the brownout from ${formatInstant(start)} to ${formatInstant(end)}`;
    if (end - start > DAY_MS) lines.push(`${brownout} is longer than a day`);
    if (start - now < DAY_MS) {
      lines.push(`${brownout} is announced for the first time, and not a day ahead`);
    }
  }
  return lines;
}
