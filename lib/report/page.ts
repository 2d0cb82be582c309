/**
 * The retirement report as a self-contained page to send to the owners of the clients. It has
 * no script.
 */

import { escape } from "@std/html/entities";
import { formatInstant } from "../lifecycle/policy.ts";
import { withToken } from "../server/route.ts";
import type { RouteUsage, UsageReport } from "./report.ts";
import { usageChart } from "./chart.ts";
import { USAGE_PAGE_STYLE } from "./page_assets.ts";
import {
  comparedText,
  count,
  gapLines,
  NOT_WHOLE,
  OTHER_REQUESTS,
  periodText,
  phasesText,
  plural,
  sinceText,
  sunsetText,
  trendText,
  verdictText,
} from "./words.ts";

/** Renders the page as HTML. */
export function usagePage(report: UsageReport): string {
  const { from, today, routes, calls, otherRequests, verdict } = report;
  const gaps = gapLines(report);
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Calls to deprecated routes, ${from} to ${today}</title>
<style>${USAGE_PAGE_STYLE}</style>
</head>
<body>
<main>
<header>
<h1>Who still calls the deprecated routes</h1>
<p class="lead">${periodText(report)} · ${plural(calls, "call")}</p>
</header>
<section class="verdict ${verdict.verdict}" aria-label="Verdict">
<p><strong>${escape(verdictText(report))}</strong></p>
${gaps.length === 0 ? "" : `<ul>${gaps.map((line) => `<li>${escape(line)}</li>`).join("")}</ul>`}
<p>${escape(sunsetText(report.policy, report.now))}</p>
</section>
${routes.map((route) => routeSection(route, report)).join("\n")}
${otherRequests > 0 ? `<p class="note">${OTHER_REQUESTS}</p>` : ""}
${clientSection(report)}
</main>
</body>
</html>
`;
}

function routeSection(usage: RouteUsage, report: UsageReport): string {
  const { route, calls, otherRequests, trend } = usage;
  const others = otherRequests > 0 ? `, and ${plural(otherRequests, "other request")}` : "";
  return `<section>
<h2><code>${escape(withToken(route, "{token}"))}</code></h2>
<p>${plural(calls, "call")}${others}. ${comparedText(trend, report.days)}.</p>
${usageChart(usage, report)}
${dayTable(usage, report)}
</section>`;
}

/** Renders the chart's data as a table, for those who cannot see the chart. */
function dayTable({ days }: RouteUsage, { today }: UsageReport): string {
  const rows = days.map(({ day, isWhole, calls }) => {
    const marks = [...(day === today ? ["so far"] : []), ...(isWhole ? [] : [NOT_WHOLE])];
    const name = [day, ...marks].join(", ");
    return `<tr><td>${name}</td><td class="number">${count(calls)}</td></tr>`;
  });
  return `<details><summary>Show as a table</summary>
<table><thead><tr><th scope="col">Day</th><th scope="col" class="number">Calls</th></tr></thead>
<tbody>${rows.join("")}</tbody></table></details>`;
}

function clientSection(report: UsageReport): string {
  const { clients } = report;
  const since = `<p class="note">${escape(sinceText(report))}</p>`;
  if (clients.length === 0) {
    return `<section><h2>Clients</h2><p>No clients called.</p>${since}</section>`;
  }
  const rows = clients.map((usage) => {
    const { client, calls, trend, first, last, routes } = usage;
    return `<tr><th scope="row">${escape(client)}</th>` +
      `<td class="number" data-label="Calls">${count(calls)}</td>` +
      `<td class="number" data-label="Trend">${trendText(trend)}</td>` +
      `<td data-label="First seen">${formatInstant(first)}</td>` +
      `<td data-label="Last seen">${formatInstant(last)}</td>` +
      `<td data-label="Routes">${
        escape(routes.map((route) => route.replace("/:token", "")).join(", "))
      }</td><td data-label="Phases">${escape(phasesText(usage))}</td></tr>`;
  });
  return `<section>
<h2>Clients</h2>
${since}
<div class="scroll" tabindex="0" role="region" aria-label="Clients">
<table class="clients"><thead><tr>
<th scope="col">Client</th><th scope="col" class="number">Calls</th>
<th scope="col" class="number">Trend</th><th scope="col">First seen ever</th>
<th scope="col">Last seen</th><th scope="col">Routes</th><th scope="col">Phases</th>
</tr></thead>
<tbody>${rows.join("\n")}</tbody></table>
</div>
</section>`;
}
