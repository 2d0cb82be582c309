/** The retirement report as JSON, with instants in ISO 8601. Unknown values are left out. */

import type { HiddenCalls } from "../verdict/hidden_calls.ts";
import type { UsageReport } from "../verdict/report.ts";
import type { RouteVerdict } from "../verdict/route_verdicts.ts";
import { otherDatesLines } from "./basis_sentences.ts";
import { hiddenText } from "./hidden_sentences.ts";
import { textOf } from "./phrase.ts";
import type { ProgramNames } from "./wording.ts";

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
  "since",
  "announcedUntil",
  "onRecordSince",
  "started",
]);

/**
 * Formats the whole report. The members of the verdict on all routes are members of the report. In
 * the JSON, whose names are public, the state of a verdict is its `verdict`, and other dates and the
 * reasons of hidden calls are lines for people.
 */
export function usageJson(report: UsageReport, program: ProgramNames): string {
  const { unknown: _, ...members } = report;
  const { state, ...rest } = report.verdict;
  const probe = report.probe && withReasons(report.probe, report, program);
  const verdicts = report.verdicts.map((verdict) => membersOf(verdict, report, program));
  const otherDates = otherDatesLines(report).map(textOf);
  return JSON.stringify(
    {
      ...members,
      probe,
      verdict: state,
      verdicts,
      otherDates,
      ...withReasons(rest, report, program),
    },
    replace,
  );
}

function membersOf(verdict: RouteVerdict, report: UsageReport, program: ProgramNames) {
  const { route, calls, clients, state, ...rest } = verdict;
  return { route, calls, clients, verdict: state, ...withReasons(rest, report, program) };
}

/** Gives the sentences on hidden calls, if there can be any, in place of their facts. */
function withReasons(
  facts: object & { readonly hidden?: readonly HiddenCalls[] },
  report: UsageReport,
  program: ProgramNames,
) {
  const { hidden } = facts;
  if (hidden === undefined) return facts;
  const reasons = hidden.map((each) => {
    return { route: each.route, reason: textOf(hiddenText(each, report, program)) };
  });
  return { ...facts, hidden: reasons };
}

function replace(name: string, value: unknown): unknown {
  return INSTANTS.has(name) && typeof value === "number" ? new Date(value).toISOString() : value;
}
