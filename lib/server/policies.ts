/** The retirement policy of each deprecated route. */

import { type Moment, momentAt, type Policy } from "../lifecycle/policy.ts";

export interface Policies {
  /** The policy of every deprecated route without values of its own. */
  readonly policy: Policy;
  /** The policies of routes with values of their own, by path. */
  readonly ownPolicies?: ReadonlyMap<string, Policy>;
}

/** The retirement of a deprecated route, as a request finds it. */
export interface Retirement {
  /** The route's path, by which its calls are counted. */
  readonly path: string;
  /** The route's own policy, or the common one. */
  readonly policy: Policy;
  /** The phase, and when it ends. */
  readonly moment: Moment;
  /** The path that replaces the requested one, if its token is valid. */
  readonly successor: string | undefined;
}

/** Returns a route's policy: its own, or else the common one, which is also that of no path. */
export function policyOf({ policy, ownPolicies }: Policies, path = ""): Policy {
  return ownPolicies?.get(path) ?? policy;
}

/**
 * Returns when the phase of any of the routes changes next, in milliseconds since the epoch;
 * `Infinity` for never.
 *
 * @param paths The paths of the deprecated routes; `""` for the common policy.
 * @param instant Milliseconds since the epoch.
 */
export function nextChange(policies: Policies, paths: readonly string[], instant: number): number {
  return Math.min(...paths.map((path) => momentAt(policyOf(policies, path), instant).until));
}
