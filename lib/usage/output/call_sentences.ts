/** The sentences on the calls that were counted: in which period, to which routes, on which days. */

import type { Policy } from "../../lifecycle/policy.ts";
import type { DayNote } from "../verdict/day_notes.ts";
import type { RouteUsage, UsageReport } from "../verdict/report.ts";
import { date, instant, type Phrase, phrase } from "./phrase.ts";
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
export function periodText({ from, days, today, now }: UsageReport): Phrase {
  const whole = `${plural(days, "whole day")} and part of `;
  return phrase(date(from), " to ", instant(now), ` (${whole}`, date(today), ", UTC)");
}

/** Says when a report was made, because it may be kept. */
export function madeText({ now }: UsageReport): Phrase {
  return phrase("Made at ", instant(now), ".");
}

/** Says since when the record is complete. */
export function sinceText({ completeSince, now }: UsageReport): Phrase {
  return completeSince === undefined
    ? phrase("The record is not complete: calls may be missing, up to ", instant(now), ".")
    : phrase(
      "The record is complete since ",
      instant(completeSince),
      "; earlier calls may be missing.",
    );
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
  return phrase("Sunset: ", sunsetAt === undefined ? "no date set" : instant(sunsetAt), ".");
}

/** Formats a note on a day, e.g. "brownout of 2027-06-10T09:00:00Z". */
export function noteText(note: DayNote): Phrase {
  if (note.kind === "incomplete") return ["incomplete record"];
  return note.start === undefined ? ["brownout"] : phrase("brownout of ", instant(note.start));
}

/** The sentences that explain what is counted. */
export const RULES = [
  "A call is a request that the removal of its path affects. Calls answered by a cache are not" +
  " counted.",
  "Other requests fail anyway, like those for something that is not there, or are OPTIONS that were" +
  " not refused.",
  "A brownout is a short planned outage that warns clients of the removal.",
];
