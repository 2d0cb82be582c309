/**
 * The calls of deprecated routes as OpenTelemetry metrics, for alerts. Deno exports them when its
 * telemetry is switched on; when it is not, none of this is loaded.
 */

import type { Usage } from "../storage/ledger.ts";
import type { Policy } from "./policy.ts";

/** What the metrics are about. */
export interface MetricsOptions {
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
  readonly policy: Policy;
}

/** Takes what was counted since the last time. */
export type UsageMetrics = (lines: readonly Usage[]) => void;

/**
 * Begins to export:
 * - `media_head.deprecated.requests`, a counter by route, method, phase and class of status;
 * - `media_head.sunset`, a gauge by route: when it is removed, in seconds since the epoch.
 */
export async function exportUsage({ routes, policy }: MetricsOptions): Promise<UsageMetrics> {
  const { metrics } = await import("@opentelemetry/api");
  const meter = metrics.getMeter("media-head");
  const requests = meter.createCounter("media_head.deprecated.requests", {
    description: "Requests answered on deprecated routes",
    unit: "{request}",
  });
  const { sunsetAt } = policy;
  if (sunsetAt !== undefined) {
    meter.createObservableGauge("media_head.sunset", {
      description: "When a deprecated route is removed, in seconds since the epoch",
      unit: "s",
    }).addCallback((result) => {
      for (const route of routes) result.observe(sunsetAt / 1000, { route });
    });
  }
  return (lines) => {
    for (const { route, method, phase, status, calls } of lines) {
      requests.add(calls, { route, method, phase, status });
    }
  };
}
