/**
 * The retirement report as a self-contained page to send to the owners of the clients. It has
 * no script.
 */

import { escape } from "@std/html/entities";
import { withToken } from "../server/route.ts";
import type { ClientUsage, RouteUsage, UsageReport } from "./report.ts";
import { PAGE_STYLE } from "./page_style.ts";
import {
  CLIENT_COLUMNS,
  count,
  dayText,
  gapLines,
  ignoredLines,
  markDay,
  type MarkedDay,
  MAX_LISTED,
  NOT_WHOLE,
  periodText,
  plural,
  requestsText,
  RULES,
  sinceText,
  sunsetText,
  titleText,
  verdictText,
} from "./words.ts";

/** Renders the page as HTML. */
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
${list([...gapLines(report), ...ignoredLines(report), ...report.contradictions])}
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
  const titles = CLIENT_COLUMNS.map(([title]) => `<th scope="col">${title}</th>`);
  const rows = clients.map((usage) => {
    const cells = CLIENT_COLUMNS.slice(1).map(([title, cellOf]) =>
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

function routeSection({ route, days, ...requests }: RouteUsage, report: UsageReport): string {
  const policy = report.policies[route];
  return `<section>
<h2><code>${escape(withToken(route, "{token}"))}</code></h2>
<p>${requestsText(requests)}. ${escape(sunsetText(policy, report.now))}</p>
${requests.calls === 0 ? "" : picture(days.map((day) => markDay(day, policy)))}
</section>`;
}

/** Where each kind of mark stands below the bars, of 100 from the top. */
const BELOW = { brownout: 88, incomplete: 95 } as const;

/** Draws a bar for each day, with what marks the day below it; and says the same in numbers. */
function picture(days: readonly MarkedDay[]): string {
  const most = Math.max(...days.map(({ calls }) => calls));
  const heightOf = (calls = 0) => calls > 0 ? Math.max(Math.round(calls / most * 85), 1) : 0;
  const bars = days.map((day, x) => {
    const [calls, brownout] = [heightOf(day.calls), heightOf(day.byPhase.brownout)];
    return `<g><title>${escape(dayText(day))}</title>` + [
      bar("calls", x, { y: 85 - calls, height: calls }),
      bar("brownout", x, { y: 85 - brownout, height: brownout }),
      ...day.marks.map(({ kind }) => bar(kind, x, { y: BELOW[kind], height: 5 })),
    ].join("") + "</g>";
  });
  const numbers = days.filter(({ calls, marks }) => calls > 0 || marks.length > 0).map(dayText);
  return `<figure>
<svg viewBox="0 0 ${days.length} 100" preserveAspectRatio="none" role="img" aria-label="Calls per day">
${bars.join("\n")}
</svg>
<p class="axis"><span>${days[0]?.day}</span><span>today</span></p>
<figcaption>${legend(days, most)}</figcaption>
${details("In numbers", list(numbers))}
</figure>`;
}

function bar(kind: string, x: number, { y, height }: { y: number; height: number }): string {
  return height === 0
    ? ""
    : `<rect class="${kind}" x="${x + .1}" y="${y}" width=".8" height="${height}"/>`;
}

function legend(days: readonly MarkedDay[], most: number): string {
  const kinds = new Set(days.flatMap(({ marks }) => marks.map(({ kind }) => kind)));
  return [
    ["calls", `calls, at most ${count(most)} a day`],
    ...[...kinds].map((kind) => [kind, kind === "incomplete" ? NOT_WHOLE : kind]),
  ].map(([kind, text]) => `<span><i class="${kind}">■</i> ${text}</span>`).join("\n");
}
