/** Extensions: later sunsets for single clients. */

import type { Policy } from "./policy.ts";

/** When the extension of each client ends, in milliseconds since the epoch, by the client's id. */
export type Extensions = Readonly<Record<string, number>>;

/**
 * Returns the policy for a client that has an extension: the same deprecation, no brownouts, and the
 * sunset at the end of the extension.
 *
 * @param end When the extension ends, in milliseconds since the epoch; `undefined` without one.
 * @returns The policy itself if the extension does not end after its sunset, or it has no sunset.
 */
export function extendedPolicy(policy: Policy, end: number | undefined): Policy {
  const { sunsetAt } = policy;
  if (end === undefined || sunsetAt === undefined || end <= sunsetAt) return policy;
  return { ...policy, sunsetAt: end, brownouts: [] };
}
