/**
 * Calls to deprecated routes as OpenTelemetry metrics, for alerts. Deno exports them when telemetry
 * is enabled; otherwise this module is never loaded.
 */

import type { UsageRow } from "../storage/ledger/ledger.ts";
import type { Phase, Policy } from "../lifecycle/policy.ts";

/** What to export metrics for. */
export interface MetricsOptions {
  /** The paths of the deprecated routes. */
  readonly routes: readonly string[];
  readonly policy: Policy;
}

/** The metrics being exported. */
export interface UsageMetrics {
  /** Adds the counts of a flush. */
  readonly add: (rows: readonly UsageRow[]) => void;
  /** Releases all pending counts for the final export. */
  readonly end: () => void;
}

/** The labels of a time series. */
type Labels = Readonly<Pick<UsageRow, "route" | "method" | "phase" | "status" | "impact">>;

/**
 * Starts exporting:
 * - `media_head.deprecated.requests`, a counter by route, method, phase, class of status and
 *   impact;
 * - `media_head.sunset`, a gauge by route: the removal date, in seconds since the epoch.
 *
 * The first sample of a counter never counts as an increase. So each series is exported at 0 before
 * it counts, and those of breaking calls from the start.
 */
export async function exportUsage({ routes, policy }: MetricsOptions): Promise<UsageMetrics> {
  const { metrics } = await import("@opentelemetry/api");
  const meter = metrics.getMeter("media-head");
  const counter = meter.createCounter("media_head.deprecated.requests", {
    description: "Requests answered on deprecated routes",
    unit: "{request}",
  });
  const series = new Map<string, Series>();

  function seriesOf({ route, method, phase, status, impact }: Labels): Series {
    const key = [route, method, phase, status, impact].join(" ");
    let found = series.get(key);
    if (found === undefined) {
      found = { labels: { route, method, phase, status, impact }, waiting: 0, isExported: false };
      series.set(key, found);
      counter.add(0, found.labels);
    }
    return found;
  }

  function release(isLast: boolean): void {
    for (const one of series.values()) {
      if (one.waiting === 0 || !(one.isExported || isLast)) continue;
      counter.add(one.waiting, one.labels);
      one.waiting = 0;
    }
  }

  const { sunsetAt } = policy;
  meter.createObservableGauge("media_head.sunset", {
    description: "When a deprecated route is removed, in seconds since the epoch",
    unit: "s",
  }).addCallback((result) => { // at every export
    for (const one of series.values()) one.isExported = true;
    if (sunsetAt === undefined) return;
    for (const route of routes) result.observe(sunsetAt / 1000, { route });
  });

  /** The classes of status that a breaking call can have. */
  const statuses: Readonly<Record<Phase, readonly string[]>> = {
    announced: ["2xx", "3xx", "4xx", "5xx"],
    deprecated: ["2xx", "3xx", "4xx", "5xx"],
    brownout: [policy.brownoutStatus === 503 ? "5xx" : "4xx"],
    removed: ["3xx", "4xx"],
  };
  for (const route of routes) {
    for (const method of ["GET", "HEAD"]) {
      for (const [phase, classes] of Object.entries(statuses) as [Phase, string[]][]) {
        for (const status of classes) {
          seriesOf({ route, method, phase, status, impact: "breaking" });
        }
      }
    }
  }
  return {
    add(rows) {
      for (const row of rows) seriesOf(row).waiting += row.calls;
      release(false);
    },
    end: () => release(true),
  };
}

/** One series of the counter. */
interface Series {
  readonly labels: Labels;
  /** Calls held until the series has been exported at 0. */
  waiting: number;
  isExported: boolean;
}
