/** The retirement policy of each deprecated route. */

import { momentAt, type Policy } from "../lifecycle/policy.ts";

export interface Policies {
  /** The common policy: that of every deprecated route without a policy of its own. */
  readonly policy: Policy;
  /** The policies of the other deprecated routes, by path. */
  readonly ownPolicies?: ReadonlyMap<string, Policy>;
}

/** Returns a route's policy: its own, or else the common one. */
export function policyOf({ policy, ownPolicies }: Policies, path: string): Policy {
  return ownPolicies?.get(path) ?? policy;
}

/**
 * Returns when the phase of any of the routes changes next, in milliseconds since the epoch;
 * `Infinity` for never.
 *
 * @param paths The paths of the deprecated routes.
 * @param instant Milliseconds since the epoch.
 */
export function nextChange(policies: Policies, paths: readonly string[], instant: number): number {
  return Math.min(...paths.map((path) => momentAt(policyOf(policies, path), instant).until));
}
