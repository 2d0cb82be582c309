/** The retirement report as JSON, with instants in ISO 8601. Unknown values are left out. */

import type { UsageReport } from "../verdict/report.ts";

/** The members that are instants. */
const INSTANTS = new Set([
  "now",
  "completeSince",
  "deprecatedAt",
  "sunsetAt",
  "start",
  "end",
  "until",
  "then",
  "last",
  "reported",
  "endedBy",
  "started",
]);

/** Formats the whole report. The members of the verdict on all routes are members of the report. */
export function usageJson(
  { program: _, canProbe: __, unknown: ___, ...report }: UsageReport,
): string {
  return JSON.stringify({ ...report, ...report.verdict }, replace);
}

function replace(name: string, value: unknown): unknown {
  return INSTANTS.has(name) && typeof value === "number" ? new Date(value).toISOString() : value;
}
