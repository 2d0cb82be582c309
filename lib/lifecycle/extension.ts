/** Extensions: later sunsets for single clients. */

import { underHold } from "./hold.ts";
import type { Policy } from "./policy.ts";

/** When the extension of each client ends, in milliseconds since the epoch, by the client's id. */
export type Extensions = Readonly<Record<string, number>>;

/** Returns whether an extension has an effect on a policy: whether it ends after the sunset. */
export function isEffective({ sunsetAt = Infinity }: Policy, end: number): boolean {
  return end > sunsetAt;
}

/**
 * Returns the policy for a client that has an extension: the same deprecation, no brownouts, and the
 * sunset at the end of the extension. A policy whose sunset is later by now keeps it. A hold moves the
 * client's own sunset, and calls off no brownout for it.
 *
 * @param end When the extension ends, in milliseconds since the epoch; `undefined` without one. It
 *   had an effect when it was granted.
 */
export function extendedPolicy(policy: Policy, end: number | undefined): Policy {
  if (end === undefined) return policy;
  const { holds = [], ...unheld } = policy;
  // The first hold that moved the sunset of the others knows their date before.
  const moved = holds.find(({ sunsetAt }) => sunsetAt !== undefined);
  const { sunsetAt = end } = moved ?? policy;
  return holds.reduce<Policy>(underHold, {
    ...unheld,
    sunsetAt: Math.max(end, sunsetAt),
    brownouts: [],
  });
}
