/**
 * The retirement report as JSON, with instants in ISO 8601. Unknown values are left out.
 */

import type { UsageReport } from "./report.ts";

/** The members that are instants. */
const INSTANTS = new Set(
  ["now", "recordedSince", "deprecatedAt", "sunsetAt", "start", "end", "first", "last", "reported"],
);

export function usageJson(report: UsageReport): string {
  return JSON.stringify(report, replace);
}

export function gateJson(
  { days, from, now, ignored, atMost, verdict, clients, contradictions }: UsageReport,
): string {
  const report = { days, from, ignored, atMost, now, ...verdict, clients, contradictions };
  return JSON.stringify(report, replace);
}

function replace(name: string, value: unknown): unknown {
  return INSTANTS.has(name) && typeof value === "number" ? new Date(value).toISOString() : value;
}
