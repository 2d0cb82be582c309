/**
 * The retirement report on a terminal.
 */

import type { ClientUsage, Report, RouteUsage, Verdict } from "../lifecycle/report.ts";
import { formatInstant } from "../lifecycle/policy.ts";

/** Characters of the longest bar. */
const BAR = 40;

/** Clients listed in a report; all of them are in the JSON and the page. */
const CLIENTS = 25;

/** The report, ready to print. */
export function usageText(report: Report, verdict: Verdict): string {
  const { from, to, routes, clients } = report;
  const days = routes[0]?.days.length ?? 0;
  return [
    `Calls of deprecated routes from ${from} to ${to} (${days} days, UTC)`,
    ...routes.map((route) => routeText(route, days)),
    clientsText(clients),
    `${sunsetText(report)}\n${verdictText(verdict, days)}`,
  ].join("\n\n");
}

/** The verdict in words, with what it rests on. */
export function verdictText(verdict: Verdict, days: number): string {
  const span = `the last ${days === 1 ? "day" : `${days} days`}`;
  switch (verdict.verdict) {
    case "clear":
      return `Clear: no deprecated route was called in ${span}, and servers were counting all the time.`;
    case "called": {
      const lines = verdict.clients.slice(0, CLIENTS).map(({ client, last }) =>
        `  ${client}, last at ${formatInstant(last)}`
      );
      const more = verdict.clients.length - lines.length;
      if (more > 0) lines.push(`  and ${count(more)} more clients`);
      return [`Still called in ${span}, by:`, ...lines].join("\n");
    }
    case "unknown": {
      const lines = verdict.gaps.slice(0, CLIENTS).map(({ start, end }) =>
        `  ${formatInstant(start)} to ${formatInstant(end)}`
      );
      const more = verdict.gaps.length - lines.length;
      if (more > 0) lines.push(`  and ${count(more)} more`);
      return [`Unknown: no call was seen in ${span}, but no server was counting from`, ...lines]
        .join("\n");
    }
  }
}

/** How many days there are until the sunset. */
export function sunsetText({ policy, daysToSunset }: Report): string {
  if (policy.sunsetAt === undefined || daysToSunset === undefined) {
    return "Sunset: no date is set.";
  }
  const date = formatInstant(policy.sunsetAt);
  const days = Math.abs(daysToSunset);
  if (days === 0) return `Sunset: ${date}, less than a day away.`;
  const distance = `${count(days)} ${days === 1 ? "day" : "days"}`;
  return `Sunset: ${date}, ${daysToSunset < 0 ? `${distance} ago` : `in ${distance}`}.`;
}

/** The change against the period before, e.g. "down 12 %". */
export function trendText(calls: number, previousCalls: number): string {
  if (calls === previousCalls) return "unchanged";
  if (previousCalls === 0) return "new";
  const percent = Math.round(Math.abs(calls / previousCalls - 1) * 100);
  return `${calls > previousCalls ? "up" : "down"} ${count(percent)} %`;
}

/** A number with separators, whatever the language of the machine. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** e.g. "1 call", "1,000 calls" */
export function callsText(calls: number): string {
  return `${count(calls)} ${calls === 1 ? "call" : "calls"}`;
}

function routeText({ route, calls, previousCalls, days }: RouteUsage, length: number): string {
  const trend = `${trendText(calls, previousCalls)} against the ${length} days before`;
  const most = Math.max(...days.map(({ calls }) => calls), 1);
  const width = count(most).length;
  const lines = days.map(({ day, calls, byPhase }) => {
    const bar = "█".repeat(Math.ceil(calls / most * BAR));
    const mark = (byPhase.brownout ?? 0) > 0 ? "  brownout" : "";
    return `  ${day}  ${count(calls).padStart(width)}  ${bar}${mark}`.trimEnd();
  });
  return [`${route}: ${callsText(calls)}, ${trend}`, ...lines].join("\n");
}

function clientsText(clients: readonly ClientUsage[]): string {
  if (clients.length === 0) return "No client called.";
  const shown = clients.slice(0, CLIENTS);
  const rows = shown.map(({ client, calls, previousCalls, first, last }) => [
    client,
    count(calls),
    trendText(calls, previousCalls),
    formatInstant(first),
    formatInstant(last),
  ]);
  const table = [["Client", "Calls", "Trend", "First seen", "Last seen"], ...rows];
  const widths = [0, 1, 2, 3, 4].map((column) =>
    Math.max(...table.map((row) => (row[column] ?? "").length))
  );
  const lines = table.map((row) =>
    row.map((cell, column) => {
      const width = widths[column] ?? 0;
      return column === 1 ? cell.padStart(width) : cell.padEnd(width);
    }).join("  ").trimEnd()
  );
  const more = clients.length - shown.length;
  if (more > 0) lines.push(`and ${count(more)} more clients`);
  return lines.join("\n");
}
