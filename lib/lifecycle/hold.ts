/** Holds: while one lasts, an endpoint is served as if no brownout and no sunset were due. */

import type { Interval } from "./instant.ts";
import { isPartOf } from "./route_name.ts";
import type { Brownout, Policy, PolicyHold, RoutePolicies } from "./policy.ts";

/** A hold. It can only spare calls: it refuses none, and moves no refusal forward. */
export interface Hold extends Interval {
  /** The operator's reason, which clients read, too. */
  readonly because: string;
}

/** A hold on one route and its parts, or on all of them. */
export interface RouteHold extends Hold {
  /** The name of the route; `undefined` for all routes. */
  readonly route: string | undefined;
}

/**
 * Returns a policy under a hold. The hold cuts brownouts. A sunset before its end moves to its end,
 * even one that has passed when the hold begins. Nothing else changes. After the hold, what is left
 * of a brownout follows.
 */
export function underHold(policy: Policy, hold: Hold): Policy {
  const { start, end, because } = hold;
  const { holds = [], sunsetAt } = policy;
  const moves = sunsetAt !== undefined && sunsetAt < end;
  const calledOff = policy.brownouts
    .map((brownout) => ({
      start: Math.max(start, brownout.start),
      end: Math.min(end, brownout.end),
    }))
    .filter((part) => part.start < part.end);
  const applied: PolicyHold = {
    start,
    end,
    because,
    brownouts: calledOff,
    sunsetAt: moves ? sunsetAt : undefined,
  };
  return {
    ...policy,
    sunsetAt: moves ? end : sunsetAt,
    brownouts: policy.brownouts.flatMap((brownout) => without(brownout, hold)),
    holds: [...holds, applied],
  };
}

/** Returns the parts of a brownout before and after a hold. */
function without(brownout: Brownout, { start, end }: Hold): Brownout[] {
  return [
    { ...brownout, end: Math.min(brownout.end, start) },
    { ...brownout, start: Math.max(brownout.start, end) },
  ].filter((part) => part.start < part.end);
}

/** Returns the policy of each route under the holds on it. */
export function underHolds(policies: RoutePolicies, holds: readonly RouteHold[]): RoutePolicies {
  const ordered = holds.toSorted((a, b) => a.start - b.start || a.end - b.end);
  return Object.fromEntries(
    Object.entries(policies).map(([route, policy]) => {
      const own = ordered.filter((hold) => hold.route === undefined || isPartOf(hold.route, route));
      return [route, own.reduce<Policy>(underHold, policy)];
    }),
  );
}

/** Returns the holds on a policy that last at an instant. */
export function holdsAt({ holds = [] }: Pick<Policy, "holds">, instant: number): PolicyHold[] {
  return holds.filter(({ start, end }) => start <= instant && instant < end);
}

/** Returns the holds on a policy that last at an instant, or that called something off. */
export function notableHolds({ holds = [] }: Pick<Policy, "holds">, instant: number): PolicyHold[] {
  return holds.filter(({ end, brownouts, sunsetAt }) =>
    instant < end || brownouts.length > 0 || sunsetAt !== undefined
  );
}
