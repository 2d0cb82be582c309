/** Warnings about settings. */

import { momentAt } from "../lifecycle/policy.ts";
import type { Config } from "./config.ts";
import { SAMPLES_DEPRECATED_AT } from "./policy_config.ts";

/**
 * Returns warnings about settings that are valid, but hardly meant.
 *
 * @param now Milliseconds since the epoch.
 */
export function warningsOf(
  { database, policies, isDeprecationUnset, isTracingOn }: Pick<
    Config,
    "database" | "policies" | "isDeprecationUnset" | "isTracingOn"
  >,
  now: number,
): string[] {
  const warnings: string[] = [];
  const removed = Object.entries(policies)
    .flatMap(([path, policy]) => momentAt(policy, now).phase === "removed" ? [path] : []);
  if (removed.length > 0) {
    const routes = removed.join(" and ");
    warnings.push(
      `The sunset has passed, so these paths now answer as removed: ${routes}; delete their routes when ready`,
    );
  }
  if (isDeprecationUnset && Object.keys(policies).length > 0) {
    const date = `${SAMPLES_DEPRECATED_AT}, the date of the samples`;
    warnings.push(`DEPRECATED_AT is not set, so the old paths announce ${date}`);
  }
  if (isTracingOn) {
    const remedy = "set OTEL_DENO_TRACING=false to stop that";
    warnings.push(`Deno exports traces, with the tokens and queries of all requests: ${remedy}`);
  }
  if (database.warning !== undefined) warnings.push(`DATABASE_URL: ${database.warning}`);
  return warnings;
}
