/** Whether the removal of a deprecated route breaks a call. */

import type { Phase } from "../lifecycle/policy.ts";
import type { Impact } from "../usage/record/records.ts";
import { isBreaking } from "../lifecycle/breaking.ts";

/**
 * Returns the removal's impact on calls that are answered like this one. In a brownout and after
 * the removal nothing is looked up, so it breaks the calls of every valid token.
 */
export function impactOf({ method, phase, status, hasToken }: {
  readonly method: string;
  readonly phase: Phase;
  readonly status: number;
  /** Whether the path has a well-formed token. */
  readonly hasToken: boolean;
}): Impact {
  const isRefusable = method === "GET" || method === "HEAD";
  const isRefused = isRefusable && (phase === "brownout" || phase === "removed");
  return hasToken && isBreaking({ method, status, isRefused }) ? "breaking" : "none";
}
