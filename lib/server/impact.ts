/** Whether the removal of a deprecated route breaks a call. */

import type { Phase } from "../lifecycle/policy.ts";
import { isBreaking } from "../lifecycle/refusal.ts";
import type { Impact } from "../usage/records.ts";

/**
 * Returns whether the removal breaks calls answered like this. In a brownout and after the removal
 * nothing is looked up, so every valid token counts as breaking.
 */
export function impactOf({ method, phase, status, hasToken }: {
  readonly method: string;
  readonly phase: Phase;
  readonly status: number;
  /** Whether the path has a well-formed token. */
  readonly hasToken: boolean;
}): Impact {
  if (!hasToken || (method !== "GET" && method !== "HEAD")) return "none";
  const isRefused = phase === "brownout" || phase === "removed";
  return isBreaking({ status, isRefused }) ? "breaking" : "none";
}
