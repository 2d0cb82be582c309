/** The sentences on the calls that were counted: in which period, to which routes, on which days. */

import { formatInstant } from "../../http/timestamp.ts";
import type { Policy } from "../../lifecycle/policy.ts";
import type { DayNote } from "../verdict/day_notes.ts";
import type { RouteUsage, UsageReport } from "../verdict/report.ts";
import { MAX_IN_DETAIL, plural } from "./wording.ts";

export function titleText(report: UsageReport): string {
  return `Calls${byText(report)} to deprecated routes`;
}

export function byText({ client }: UsageReport): string {
  return client === undefined ? "" : ` by ${client}`;
}

/**
 * Formats the period, up to the time of the report, e.g. "2027-06-08 to 2027-06-15T12:00:00Z (7 whole
 * days and part of 2027-06-15, UTC)".
 */
export function periodText({ from, days, today, now }: UsageReport): string {
  const length = `${plural(days, "whole day")} and part of ${today}, UTC`;
  return `${from} to ${formatInstant(now)} (${length})`;
}

/** Says when a report was made, because it may be kept. */
export function madeText({ now }: UsageReport): string {
  return `Made at ${formatInstant(now)}.`;
}

/** Says since when the record is complete. */
export function sinceText({ completeSince, now }: UsageReport): string {
  return completeSince === undefined
    ? `The record is not complete: calls may be missing, up to ${formatInstant(now)}.`
    : `The record is complete since ${formatInstant(completeSince)}; earlier calls may be missing.`;
}

/** Returns whether a report has so many routes that they are not shown in detail. */
export function hasManyRoutes({ routes }: Pick<UsageReport, "routes">): boolean {
  return routes.length > MAX_IN_DETAIL;
}

/** Formats the requests to a route, e.g. "5 calls and 1 other request". */
export function requestsText({ calls, otherRequests }: RouteUsage): string {
  const others = otherRequests > 0 ? ` and ${plural(otherRequests, "other request")}` : "";
  return plural(calls, "call") + others;
}

export function sunsetText({ sunsetAt }: Partial<Policy> = {}): string {
  return `Sunset: ${sunsetAt === undefined ? "no date set" : formatInstant(sunsetAt)}.`;
}

/** Formats a note on a day, e.g. "brownout of 2027-06-10T09:00:00Z". */
export function noteText(note: DayNote): string {
  if (note.kind === "incomplete") return "incomplete record";
  return note.start === undefined ? "brownout" : `brownout of ${formatInstant(note.start)}`;
}

/** The sentences that explain what is counted. */
export const RULES = [
  "A call is a request that the removal of its path affects. Calls answered by a cache are not" +
  " counted.",
  "Other requests fail anyway, like those for something that is not there, or are OPTIONS that were" +
  " not refused.",
  "A brownout is a short planned outage that warns clients of the removal.",
];
