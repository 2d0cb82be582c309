/** The retirement report as text for a terminal. */

import { notesOf } from "../verdict/day_notes.ts";
import type { DayUsage, RouteUsage, UsageReport } from "../verdict/report.ts";
import type { ClientUsage } from "../verdict/sums.ts";
import { basisLines } from "./basis_sentences.ts";
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
import { clientLines } from "./client_sentences.ts";
import { doubtLines } from "./doubt_sentences.ts";
import { routeLines, verdictText } from "./verdict_sentences.ts";
import { count, MAX_LISTED, plural } from "./wording.ts";

/** The length of the longest bar, in characters. */
const BAR_LENGTH = 40;

export function usageText(report: UsageReport): string {
  return [
    `${titleText(report)} from ${periodText(report)}\n${madeText(report)} ${sinceText(report)}`,
    ...report.routes.map((route) => routeText(route, report)),
    RULES.join("\n"),
    clientsText(report.clients),
    judgement(report),
  ].join("\n\n");
}

export function gateText(report: UsageReport): string {
  return judgement(report, clientLines(report.clients.toSorted((a, b) => b.last - a.last)));
}

function judgement(report: UsageReport, callers: readonly string[] = []): string {
  const details = [...doubtLines(report), ...callers].map((line) => `  ${line}`);
  return [...routeLines(report), verdictText(report), ...details, ...basisLines(report)].join("\n");
}

function routeText(usage: RouteUsage, report: UsageReport): string {
  const { today } = report;
  const { route, days } = usage;
  const policy = report.policies[route];
  const most = Math.max(...days.map(({ calls }) => calls), 1);
  const width = count(most).length;
  // Days of an incomplete record are left out, unless they have calls: sinceText() covers them.
  const isShown = ({ day, isWhole }: DayUsage) =>
    !hasManyRoutes(report) && (isWhole || day === today);
  const lines = days.filter((each) => each.calls > 0 || isShown(each)).map((usage) => {
    const { day, calls } = usage;
    const bar = "█".repeat(Math.ceil(calls / most * BAR_LENGTH));
    const part = day === today ? ["part of the day"] : [];
    const notes = [...part, ...notesOf(usage, policy).map(noteText)];
    return ["", day, count(calls).padStart(width), ...(bar ? [bar] : []), ...notes].join("  ");
  });
  const clients = report.routes.length > 1 ? clientLines(usage.clients) : [];
  return [
    `${route}: ${requestsText(usage)}. ${sunsetText(policy)}`,
    ...lines,
    ...clients.map((line) => `  ${line}`),
  ].join("\n");
}

function clientsText(clients: readonly ClientUsage[]): string {
  if (clients.length === 0) return "No clients called.";
  const shown = clients.slice(0, MAX_LISTED);
  const columns = columnsOf(shown).filter(({ isInText }) => isInText).map(
    ({ title, cellOf, isNumber }) => {
      const cells = [title, ...shown.map(cellOf)];
      const width = Math.max(...cells.map(({ length }) => length));
      return cells.map((cell) => isNumber ? cell.padStart(width) : cell.padEnd(width));
    },
  );
  const lines = ["", ...shown].map((_, row) =>
    columns.map((cells) => cells[row]).join("  ").trimEnd()
  );
  const more = clients.length - shown.length;
  if (more > 0) lines.push(`and ${plural(more, "more client")}`);
  return lines.join("\n");
}
