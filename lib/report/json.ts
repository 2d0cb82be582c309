/**
 * The retirement report as JSON: instants as ISO 8601, and `null` for unknown values.
 */

import type { ClientUsage, UsageReport } from "./report.ts";
import type { Interval } from "../lifecycle/policy.ts";
import type { Gap, Verdict } from "./verdict.ts";

/** Returns the whole report. */
export function usageJson(report: UsageReport) {
  const { now, routes, clients, recordedSince, policy, verdict, ...rest } = report;
  return {
    ...rest,
    now: iso(now),
    recordedSince: recordedSince === undefined ? null : iso(recordedSince),
    routes: routes.map((route) => ({ ...route, trend: route.trend ?? null })),
    clients: clients.map(clientJson),
    policy: {
      ...policy,
      deprecatedAt: iso(policy.deprecatedAt),
      sunsetAt: policy.sunsetAt === undefined ? null : iso(policy.sunsetAt),
      brownouts: policy.brownouts.map(intervalJson),
    },
    verdict: verdictJson(verdict),
  };
}

/** Returns the verdict and the remaining clients. */
export function gateJson({ now, clients, verdict, ...report }: UsageReport) {
  const { days, from, ignored, atMost } = report;
  const options = { days, from, ignored, atMost, now: iso(now) };
  return { ...options, ...verdictJson(verdict), clients: clients.map(clientJson) };
}

function verdictJson(verdict: Verdict) {
  return verdict.verdict === "unknown" ? { ...verdict, gaps: verdict.gaps.map(gapJson) } : verdict;
}

function clientJson({ first, last, trend, brownouts, ...rest }: ClientUsage) {
  const instants = { first: iso(first), last: iso(last), brownouts: brownouts.map(iso) };
  return { ...rest, trend: trend ?? null, ...instants };
}

function intervalJson<T extends Interval>(interval: T) {
  return { ...interval, start: iso(interval.start), end: iso(interval.end) };
}

function gapJson(gap: Gap) {
  const reported = "reported" in gap ? { reported: iso(gap.reported) } : {};
  return { ...intervalJson(gap), ...reported };
}

function iso(instant: number): string {
  return new Date(instant).toISOString();
}
