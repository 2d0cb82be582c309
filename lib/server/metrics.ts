/**
 * Calls to deprecated routes as OpenTelemetry metrics, for alerts. Deno exports them when telemetry
 * is enabled; otherwise this module is never loaded.
 */

import { PHASES, type RoutePolicies } from "../lifecycle/policy.ts";
import type { UsageCount } from "../usage/record/records.ts";

/**
 * Starts exporting:
 * - `media_head.deprecated.requests`, a counter by route, method, phase, class of status and
 *   impact. The series of breaking calls start at 0, because a first sample is no increase.
 * - `media_head.sunset`, a gauge by route: the removal date, in seconds since the epoch. A hold can
 *   move it.
 * - `media_head.recording`, a gauge: 1, or 0 while the record of calls is interrupted.
 */
export async function exportUsage(policies: RoutePolicies) {
  const { metrics } = await import("@opentelemetry/api");
  const meter = metrics.getMeter("media-head");
  const counter = meter.createCounter("media_head.deprecated.requests", {
    description: "Requests answered on deprecated routes",
    unit: "{request}",
  });
  const sunset = meter.createGauge("media_head.sunset", {
    description: "When a deprecated route is removed, in seconds since the epoch",
    unit: "s",
  });
  for (const route of Object.keys(policies)) {
    for (const method of ["GET", "HEAD"]) {
      for (const phase of PHASES) {
        for (const status of ["2xx", "3xx", "4xx", "5xx"]) {
          counter.add(0, { route, method, phase, status, impact: "breaking" });
        }
      }
    }
  }
  const recording = meter.createGauge("media_head.recording", {
    description: "1, or 0 while the record of calls is interrupted",
  });
  const announce = (policies: RoutePolicies) => {
    for (const [route, { sunsetAt }] of Object.entries(policies)) {
      if (sunsetAt !== undefined) sunset.record(sunsetAt / 1000, { route });
    }
  };
  announce(policies);
  return {
    announce,
    add(counts: readonly UsageCount[]): void {
      for (const { calls, route, method, phase, status, impact } of counts) {
        counter.add(calls, { route, method, phase, status: `${status[0]}xx`, impact });
      }
    },
    setRecording(isRecording: boolean): void {
      recording.record(Number(isRecording));
    },
  };
}
