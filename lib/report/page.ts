/**
 * The retirement report as a self-contained page to send to the owners of the clients. It has
 * no script.
 */

import { escape } from "@std/html/entities";
import type { Policy } from "../lifecycle/policy.ts";
import { withToken } from "../server/route.ts";
import type { ClientUsage, RouteUsage, UsageReport } from "./report.ts";
import { PAGE_STYLE } from "./page_style.ts";
import {
  columnsOf,
  count,
  gapLines,
  ignoredLines,
  MAX_LISTED,
  NOT_WHOLE,
  notesOf,
  periodText,
  plural,
  requestsText,
  RULES,
  sinceText,
  sunsetText,
  titleText,
  trustLines,
  verdictText,
} from "./words.ts";

export function usagePage(report: UsageReport): string {
  const { from, today, routes, verdict } = report;
  const title = escape(titleText(report));
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}, ${from} to ${today}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p class="soft">${periodText(report)}</p>
<section class="verdict ${verdict.verdict}" aria-label="Verdict">
<p><strong>${escape(verdictText(report))}</strong></p>
${
    list([
      ...gapLines(report),
      ...trustLines(report),
      ...ignoredLines(report),
      ...report.contradictions,
    ])
  }
</section>
${clientSection(report)}
${routes.map((route) => routeSection(route, report)).join("\n")}
<section>
<h2>What is counted</h2>
${list([...RULES, sinceText(report)])}
</section>
</main>
</body>
</html>
`;
}

function list(lines: readonly string[]): string {
  if (lines.length === 0) return "";
  return `<ul>\n${lines.map((line) => `<li>${escape(line)}</li>`).join("\n")}\n</ul>`;
}

function clientSection({ clients }: UsageReport): string {
  const more = clients.slice(MAX_LISTED);
  return `<section>
<h2>Who calls</h2>
${clients.length === 0 ? "<p>No clients called.</p>" : clientTable(clients.slice(0, MAX_LISTED))}
${more.length === 0 ? "" : details(plural(more.length, "more client"), clientTable(more))}
</section>`;
}

function clientTable(clients: readonly ClientUsage[]): string {
  const columns = columnsOf(clients);
  const titles = columns.map(([title]) => `<th scope="col">${title}</th>`);
  const rows = clients.map((usage) => {
    const cells = columns.slice(1).map(([title, cellOf]) =>
      `<td data-label="${title}">${escape(cellOf(usage))}</td>`
    );
    return `<tr><th scope="row">${escape(usage.client)}</th>${cells.join("")}</tr>`;
  });
  return `<table><thead><tr>${titles.join("")}</tr></thead>
<tbody>${rows.join("\n")}</tbody></table>`;
}

function details(summary: string, html: string): string {
  return `<details><summary>${summary}</summary>\n${html}\n</details>`;
}

function routeSection(usage: RouteUsage, { policies, now }: UsageReport): string {
  const { route, calls } = usage;
  return `<section>
<h2><code>${escape(withToken(route, "{token}"))}</code></h2>
<p>${requestsText(usage)}. ${escape(sunsetText(policies[route], now))}</p>
${calls === 0 ? "" : picture(usage, policies[route])}
</section>`;
}

/** Where the notes on a day are marked below its bar, in percent from the top, by first word. */
const BELOW: Readonly<Record<string, number>> = { brownout: 88, incomplete: 95 };

/** Draws a bar for each day, with its notes marked below it, and lists the same in numbers. */
function picture({ days }: RouteUsage, policy: Policy | undefined): string {
  const most = Math.max(...days.map(({ calls }) => calls));
  const numbers: string[] = [];
  const bars = days.map((usage, x) => {
    const { day, calls, byPhase } = usage;
    const notes = notesOf(usage, policy);
    const text = `${day}: ${[plural(calls, "call"), ...notes].join(", ")}`;
    if (calls > 0 || notes.length > 0) numbers.push(text);
    const rect = (kind: string, bottom: number, height: number) =>
      `<rect class="${kind}" x="${x + .1}" y="${bottom - height}" width=".8" height="${height}"/>`;
    const bar = (kind: string, calls = 0) =>
      calls === 0 ? "" : rect(kind, 85, Math.max(Math.round(calls / most * 85), 1));
    const marks = notes.map((note) => note.split(" ")[0] ?? "")
      .map((kind) => rect(kind, (BELOW[kind] ?? 0) + 5, 5));
    return `<g><title>${escape(text)}</title>${bar("calls", calls)}${
      bar("brownout", byPhase.brownout)
    }${marks.join("")}</g>`;
  });
  return `<figure>
<svg viewBox="0 0 ${days.length} 100" preserveAspectRatio="none" role="img" aria-label="Calls per day">
${bars.join("\n")}
</svg>
<p class="axis"><span>${days[0]?.day}</span><span>today</span></p>
<figcaption><span><i class="calls">■</i> calls, at most ${count(most)} a day</span>
<span><i class="brownout">■</i> brownout</span>
<span><i class="incomplete">■</i> ${NOT_WHOLE}</span></figcaption>
${details("In numbers", list(numbers))}
</figure>`;
}
