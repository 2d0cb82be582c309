/** The sentences on the calls that were counted: in which period, to which routes, on which days. */

import type { Policy } from "../../lifecycle/policy.ts";
import type { DayNote } from "../verdict/day_notes.ts";
import type { RouteUsage, UsageReport } from "../verdict/report.ts";
import { date, instant, p, type Phrase } from "./phrase.ts";
import { MAX_IN_DETAIL, plural } from "./wording.ts";

export function titleText(report: UsageReport): string {
  return `Calls${byText(report)} to deprecated routes`;
}

export function byText({ client }: UsageReport): string {
  return client === undefined ? "" : ` by ${client}`;
}

/**
 * Formats the period, up to the instant of the report, e.g. "2027-06-08 to 2027-06-15T12:00:00Z (7
 * whole days and part of 2027-06-15, UTC)".
 */
export function periodText({ from, days, today, asOf }: UsageReport): Phrase {
  return p`${date(from)} to ${instant(asOf)}
    (${plural(days, "whole day")} and part of ${date(today)}, UTC)`;
}

/** Formats the period in a sentence, e.g. "from 2027-06-08 (as of 2027-06-15T12:00:00Z)". */
export function spanText({ from, asOf }: UsageReport): Phrase {
  return p`from ${date(from)} (as of ${instant(asOf)})`;
}

/** Says as of when a report is, because it may be kept. */
export function madeText({ asOf }: UsageReport): Phrase {
  return p`As of ${instant(asOf)}.`;
}

/** Says how far back calls are on record. */
export function sinceText({ onRecordSince }: UsageReport): Phrase {
  return onRecordSince === undefined
    ? p`Nothing is on record yet.`
    : p`On record since ${instant(onRecordSince)}.`;
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

export function sunsetText({ sunsetAt }: Partial<Policy> = {}): Phrase {
  return p`Sunset: ${sunsetAt === undefined ? "no date set" : instant(sunsetAt)}.`;
}

/** Formats a note on a day, e.g. "brownout of 2027-06-10T09:00:00Z". */
export function noteText(note: DayNote): Phrase {
  if (note.kind === "not on record") return p`not fully on record`;
  return note.start === undefined ? p`brownout` : p`brownout of ${instant(note.start)}`;
}

/** The sentences that explain what is counted. */
export const RULES = [
  "A call is a request that the removal of its path affects. Calls answered by a cache are not" +
  " counted.",
  "Other requests would fail anyway, such as those for something that does not exist, or are OPTIONS" +
  " that were not refused.",
  "A brownout is a short planned outage that warns clients of the removal.",
] as const;
