/**
 * The retirement report as JSON: instants as ISO 8601, and `null` for unknown values.
 */

import type { UsageReport } from "./report.ts";

/** The members that are instants, or lists of such. */
const INSTANTS = new Set(
  ["now", "recordedSince", "deprecatedAt", "sunsetAt", "start", "end", "first", "last", "reported"],
);

/** The members that may be unknown. */
const UNKNOWN = new Set(["recordedSince", "sunsetAt"]);

/** Returns the whole report. */
export function usageJson(report: UsageReport): unknown {
  return JSON.parse(JSON.stringify(report, replace));
}

/** Returns the verdict and the remaining clients. */
export function gateJson(
  { days, from, now, ignored, atMost, verdict, clients, contradictions }: UsageReport,
): unknown {
  const report = { days, from, ignored, atMost, now, ...verdict, clients, contradictions };
  return JSON.parse(JSON.stringify(report, replace));
}

function replace(name: string, value: unknown): unknown {
  if (value === undefined && UNKNOWN.has(name)) return null;
  const isBrownouts = name === "brownouts" && Array.isArray(value);
  if (isBrownouts) return value.map((each) => typeof each === "number" ? iso(each) : each);
  return INSTANTS.has(name) && typeof value === "number" ? iso(value) : value;
}

function iso(instant: number): string {
  return new Date(instant).toISOString();
}
