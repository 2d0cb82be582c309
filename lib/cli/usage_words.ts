/**
 * What the retirement report says in words, on a terminal and on its page.
 */

import type { Trend, UsageReport } from "../usage/report.ts";
import { formatInstant, type Policy } from "../lifecycle/policy.ts";
import type { Gap } from "../usage/verdict.ts";

/** Clients, and gaps, listed at most; all of them are in the JSON. */
export const MAX_LISTED = 25;

/** The period, e.g. "2027-06-08 to now (7 whole days and today so far, UTC)". */
export function periodText({ from, days }: UsageReport): string {
  return `${from} to now (${plural(days, "whole day")} and today so far, UTC)`;
}

/** The verdict in one sentence. */
export function verdictText(report: UsageReport): string {
  const span = `since ${report.from} (${plural(report.days, "whole day")} and today, UTC)`;
  switch (report.verdict.verdict) {
    case "clear":
      return `Clear: no call ${span}, and servers were counting all the time.`;
    case "called": {
      const latest = report.clients.reduce((a, b) => b.last > a.last ? b : a);
      return `Still called: ${plural(report.calls, "call")} by ` +
        `${plural(report.clients.length, "client")} ${span}, the last by ${latest.client} at ` +
        `${formatInstant(latest.last)}.`;
    }
    case "unknown":
      return `Unknown: no call was counted ${span}, but not all of that time is on record.`;
  }
}

/** What the verdict "unknown" rests on, a line for each gap in the record, and what to do. */
export function gapLines({ verdict }: UsageReport): string[] {
  if (verdict.verdict !== "unknown") return [];
  const lines = verdict.gaps.slice(0, MAX_LISTED).map(gapText);
  const more = verdict.gaps.length - lines.length;
  if (more > 0) lines.push(`and ${count(more)} more`);
  const silent = verdict.gaps.flatMap((gap) => gap.reason === "silent" ? [gap.server] : []);
  if (silent.length > 0) {
    lines.push(
      "A silent server may be answering calls. If it runs, see its log, and compare its clock with" +
        " this machine's. If it has answered nothing since then:" +
        ` deno task media usage --gone ${silent.join(" ")}`,
    );
  }
  return lines;
}

function gapText(gap: Gap): string {
  const [start, end] = [formatInstant(gap.start), formatInstant(gap.end)];
  switch (gap.reason) {
    case "deleted":
      return `${start} to ${end}: deleted, as USAGE_DAYS demands`;
    case "no server":
      return `${start} to ${end}: no server was registered`;
    case "silent":
      return `since ${start}: server ${gap.server} has not been heard from`;
  }
}

/** How far away the sunset is. */
export function sunsetText({ sunsetAt }: Policy, now: number): string {
  if (sunsetAt === undefined) return "Sunset: no date is set.";
  const distance = distanceText(Math.abs(sunsetAt - now));
  return `Sunset: ${formatInstant(sunsetAt)}, ${
    sunsetAt <= now ? `${distance} ago` : `in ${distance}`
  }.`;
}

function distanceText(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / 60_000);
  const hours = Math.floor(minutes / 60);
  if (minutes < 1) return "less than a minute";
  if (hours < 1) return plural(minutes, "minute");
  return hours < 48 ? plural(hours, "hour") : plural(Math.floor(hours / 24), "day");
}

/** The change of the whole days against those before, e.g. "down 12 %". */
export function trendText(trend: Trend | undefined): string {
  if (trend === undefined) return "unknown";
  const { calls, previousCalls } = trend;
  if (calls === previousCalls) return "unchanged";
  if (previousCalls === 0) return "none before";
  return `${calls > previousCalls ? "up" : "down"} ${percentText(trend)}`;
}

/** Never 0 % where something changed, nor 100 % down where something is left. */
function percentText({ calls, previousCalls }: Trend): string {
  const percent = Math.abs(calls - previousCalls) * 100 / previousCalls;
  if (percent < 0.1) return "less than 0.1 %";
  if (calls > 0 && calls < previousCalls && percent > 99) {
    return percent > 99.9 ? "more than 99.9 %" : `${percent.toFixed(1)} %`;
  }
  return `${percent < 9.95 ? percent.toFixed(1) : count(Math.round(percent))} %`;
}

/** The calls of whole days, compared; or why they are not. */
export function comparedText(trend: Trend | undefined, days: number): string {
  if (trend === undefined) {
    return `No trend: the ${plural(2 * days, "day")} to compare are not all on record`;
  }
  const { calls, previousCalls } = trend;
  const change = calls === previousCalls || previousCalls === 0 ? "" : `${trendText(trend)} from `;
  return `${plural(calls, "call")} in ${plural(days, "whole day")}, ` +
    `${change}${count(previousCalls)} in the ${plural(days, "day")} before`;
}

/** Since when calls are on record, and so how far back "first seen" and trends can go. */
export function sinceText({ recordedSince }: UsageReport): string {
  return recordedSince === undefined
    ? "Nothing is on record: no server ever counted."
    : `Calls are on record since ${formatInstant(recordedSince)}; who called before is not known.`;
}

/** Said of a day whose number may be too small. */
export const NOT_WHOLE = "not all on record";

/** What the "other requests" are. */
export const OTHER_REQUESTS =
  "Other requests: OPTIONS, other methods, malformed tokens, and items that are not published." +
  " Removal breaks nothing for those.";

/** A number with separators, whatever the language of the machine. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** e.g. "1 call", "1,000 calls" */
export function plural(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}
