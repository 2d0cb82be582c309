/**
 * The retirement report as JSON: instants as ISO 8601, and `null` for unknown values.
 */

import type { UsageReport } from "./report.ts";

/** The members that are instants. */
const INSTANTS = new Set(
  ["now", "recordedSince", "deprecatedAt", "sunsetAt", "start", "end", "first", "last", "reported"],
);

/** The members that may be unknown. */
const UNKNOWN = new Set(["recordedSince", "sunsetAt"]);

/** Formats the whole report. */
export function usageJson(report: UsageReport): string {
  return JSON.stringify(report, replace);
}

/** Formats the verdict and the remaining clients. */
export function gateJson(
  { days, from, now, ignored, atMost, verdict, clients, contradictions }: UsageReport,
): string {
  const report = { days, from, ignored, atMost, now, ...verdict, clients, contradictions };
  return JSON.stringify(report, replace);
}

function replace(name: string, value: unknown): unknown {
  if (value === undefined && UNKNOWN.has(name)) return null;
  return INSTANTS.has(name) && typeof value === "number" ? new Date(value).toISOString() : value;
}
