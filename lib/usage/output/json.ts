/** The retirement report as JSON, with instants in ISO 8601. Unknown values are left out. */

import type { UsageReport } from "../verdict/report.ts";
import type { RouteVerdict } from "../verdict/route_verdicts.ts";
import { otherDatesLines } from "./basis_sentences.ts";

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

/**
 * Formats the whole report. The members of the verdict on all routes are members of the report. In
 * the JSON, whose names are public, the state of a verdict is its `verdict`, and other dates are
 * lines for people.
 */
export function usageJson(
  { program: _, canProbe: __, unknown: ___, ...report }: UsageReport,
): string {
  const { state, ...rest } = report.verdict;
  const verdicts = report.verdicts.map(membersOf);
  const otherDates = otherDatesLines(report);
  return JSON.stringify({ ...report, verdict: state, verdicts, otherDates, ...rest }, replace);
}

function membersOf({ route, calls, clients, state, ...rest }: RouteVerdict) {
  return { route, calls, clients, verdict: state, ...rest };
}

function replace(name: string, value: unknown): unknown {
  return INSTANTS.has(name) && typeof value === "number" ? new Date(value).toISOString() : value;
}
