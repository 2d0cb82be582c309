/** The retirement report as JSON, with instants in ISO 8601. Unknown values are left out. */

import type { HiddenCalls } from "../verdict/hidden_calls.ts";
import type { UsageReport } from "../verdict/report.ts";
import type { RouteVerdict } from "../verdict/verdict.ts";
import { otherDatesLines } from "./basis_sentences.ts";
import { hiddenText } from "./hidden_sentences.ts";
import { type ProgramNames, textOf } from "./phrase.ts";

/** The limit on gaps in the JSON. `gapCount` counts them all. */
const MAX_GAPS = 1_000;

/** The members that are instants. */
const INSTANTS = new Set([
  "asOf",
  "deprecatedAt",
  "sunsetAt",
  "start",
  "end",
  "until",
  "last",
  "since",
  "announcedUntil",
  "onRecordSince",
  "started",
  "databaseTime",
  "now",
]);

/**
 * Formats the whole report. In the JSON, whose names are public, the state of a verdict is its
 * `verdict`, and other dates and the reasons of hidden calls are lines for people. Of very many gaps,
 * it has the latest.
 */
export function usageJson(report: UsageReport, names: ProgramNames): string {
  const { state: verdict, gaps, ...members } = report;
  const reasonOf = (hidden: HiddenCalls) => textOf(hiddenText(hidden, ["it"], report), names);
  const probe = report.probe && withReasons(report.probe, reasonOf);
  const verdicts = report.verdicts.map((each) => membersOf(each, reasonOf));
  const otherDates = otherDatesLines(report).map((line) => textOf(line));
  return JSON.stringify(
    {
      verdict,
      ...members,
      probe,
      verdicts,
      gaps: gaps.slice(-MAX_GAPS),
      gapCount: gaps.length,
      otherDates,
    },
    replace,
  );
}

/** The gaps of a route are among those of the report. */
function membersOf(verdict: RouteVerdict, reasonOf: (hidden: HiddenCalls) => string) {
  const { route, calls, clients, state, causes, gaps: _, ...rest } = verdict;
  return {
    ...{ route, verdict: state, calls, clients },
    causes: causes.map((cause) =>
      cause.cause === "hidden" ? { ...cause, hidden: reasonOf(cause.hidden) } : cause
    ),
    ...rest,
  };
}

/** Gives the sentences on hidden calls, if there can be any, in place of their facts. */
function withReasons(
  facts: object & { readonly hidden?: readonly HiddenCalls[] },
  reasonOf: (hidden: HiddenCalls) => string,
) {
  const { hidden } = facts;
  if (hidden === undefined) return facts;
  return {
    ...facts,
    hidden: hidden.map((each) => ({ route: each.route, reason: reasonOf(each) })),
  };
}

function replace(name: string, value: unknown): unknown {
  return INSTANTS.has(name) && typeof value === "number" ? new Date(value).toISOString() : value;
}
