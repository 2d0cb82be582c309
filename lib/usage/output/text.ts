/** The retirement report as text for a terminal. */

import { notesOf } from "../verdict/day_notes.ts";
import type { DayUsage, RouteUsage, UsageReport } from "../verdict/report.ts";
import type { ClientUsage } from "../verdict/sums.ts";
import { basisItems, gateBasisLines } from "./basis_sentences.ts";
import {
  hasManyRoutes,
  madeText,
  noteText,
  periodText,
  requestsText,
  RULES,
  sinceText,
  sunsetText,
  titleText,
} from "./call_sentences.ts";
import { columnsOf } from "./client_columns.ts";
import { joined, p, type Phrase, type ProgramNames, textOf } from "./phrase.ts";
import { dueLines, routeLine, routeLines, verdictText } from "./verdict_sentences.ts";
import { count, MAX_LISTED, plural } from "./wording.ts";

/** The length of the longest bar, in characters. */
const BAR_LENGTH = 40;

/** Formats the report: the verdict first, then who calls, and then how that is known. */
export function usageText(report: UsageReport, names: ProgramNames): string {
  const { judged, routes, clients } = report;
  const parts = [
    ...judged.length === 0 ? [[titleText(report)]] : [],
    verdictText(report),
    ...routes.map((route) => routeText(route, report)),
    ...clients.length === 0 ? [] : [[daysText(report)]],
    inLines(basisItems(report).flatMap(({ line, below = [] }) => [line, ...indented(below)])),
    inLines([
      p`${titleText(report)} from ${periodText(report)}`,
      p`${madeText(report)} ${sinceText(report)}`,
      ...RULES.map((rule) => [rule]),
    ]),
  ];
  return textOf(joined(parts, "\n\n"), names);
}

/** Formats the verdict in a line, then that on each of several routes, and then what they leave out. */
export function gateText(report: UsageReport, names: ProgramNames): string {
  const lines = [verdictText(report), ...routeLines(report), ...gateBasisLines(report)];
  return textOf(inLines(lines), names);
}

function inLines(lines: readonly Phrase[]): Phrase {
  return joined(lines, "\n");
}

function indented(lines: readonly Phrase[]): Phrase[] {
  return lines.map((line) => p`  ${line}`);
}

/** Formats the verdict on a route, its dates, and its clients as a table. */
function routeText(usage: RouteUsage, report: UsageReport): Phrase {
  const { verdicts, policies } = report;
  const { route, clients, otherRequests } = usage;
  const verdict = verdicts.find((each) => each.route === route);
  const others = otherRequests > 0 ? `; ${plural(otherRequests, "other request")}` : "";
  const line = verdict === undefined || verdicts.length < 2
    ? p`${route}: ${requestsText(usage)}`
    : p`${routeLine(verdict, report)}${others}`;
  return inLines([
    p`${line}. ${sunsetText(policies[route])}`,
    ...indented(tableLines(clients).map((line) => [line])),
    ...indented(verdict === undefined ? [] : dueLines(verdict)),
  ]);
}

/** Formats the calls to each route by day. */
function daysText(report: UsageReport): string {
  return report.routes.filter(({ calls }) => calls > 0)
    .map((usage) => [`Calls to ${usage.route} by day:`, ...dayLines(usage, report)].join("\n"))
    .join("\n\n");
}

function dayLines({ route, days }: RouteUsage, report: UsageReport): string[] {
  const { today } = report;
  const policy = report.policies[route];
  const most = Math.max(...days.map(({ calls }) => calls), 1);
  const width = count(most).length;
  // Days that are not on record are left out, unless they have calls: the gaps cover them.
  const isShown = ({ day, isOnRecord }: DayUsage) =>
    !hasManyRoutes(report) && (isOnRecord || day === today);
  return days.filter((each) => each.calls > 0 || isShown(each)).map((usage) => {
    const { day, calls } = usage;
    const bar = "█".repeat(Math.ceil(calls / most * BAR_LENGTH));
    const part = day === today ? ["part of the day"] : [];
    const notes = [...part, ...notesOf(usage, policy).map((note) => textOf(noteText(note)))];
    return ["", day, count(calls).padStart(width), ...(bar ? [bar] : []), ...notes].join("  ");
  });
}

function tableLines(clients: readonly ClientUsage[]): string[] {
  if (clients.length === 0) return [];
  const shown = clients.slice(0, MAX_LISTED);
  const columns = columnsOf(shown).filter(({ isInText }) => isInText).map(
    ({ title, cellOf, isNumber }) => {
      const cells = [title, ...shown.map((usage) => textOf(cellOf(usage)))];
      const width = Math.max(...cells.map(({ length }) => length));
      return cells.map((cell) => isNumber ? cell.padStart(width) : cell.padEnd(width));
    },
  );
  const lines = ["", ...shown].map((_, row) =>
    columns.map((cells) => cells[row]).join("  ").trimEnd()
  );
  const more = clients.length - shown.length;
  if (more > 0) lines.push(`and ${plural(more, "more client")}`);
  return lines;
}
