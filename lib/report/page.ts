/**
 * The retirement report as a self-contained page to send to the owners of the clients. It has
 * no script.
 */

import { escape } from "@std/html/entities";
import { formatInstant, PHASES } from "../lifecycle/policy.ts";
import { withToken } from "../server/route.ts";
import { DAY_MS } from "../usage/day.ts";
import type { RouteUsage, UsageReport } from "./report.ts";
import { USAGE_PAGE_STYLE } from "./page_assets.ts";
import {
  CLIENT_COLUMNS,
  count,
  gapLines,
  NOT_WHOLE,
  OTHER_REQUESTS,
  periodText,
  plural,
  requestsText,
  sinceText,
  sunsetText,
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
<section class="banner verdict ${verdict.verdict}" aria-label="Verdict">
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
  return `<section>
<h2><code>${escape(withToken(usage.route, "{token}"))}</code></h2>
<p>${requestsText(usage)}.</p>
${dayTable(usage, report)}
</section>`;
}

/** Renders the calls of each day, the last first, as a bar stacked by phase, beside their number. */
function dayTable({ route, days }: RouteUsage, { today, policy }: UsageReport): string {
  const most = Math.max(...days.map(({ calls }) => calls), 1);
  const { brownouts, sunsetAt = Infinity } = policy;
  const rows = days.toReversed().map(({ day, isWhole, calls, byPhase }) => {
    const start = Date.parse(day);
    const end = start + DAY_MS;
    const phases = PHASES.map((phase) => ({ phase, calls: byPhase[phase] ?? 0 }))
      .filter(({ calls }) => calls > 0);
    const bars = phases.map(({ phase, calls }) =>
      `<span style="background:var(--${phase});width:${calls / most * 100}%"></span>`
    );
    const notes = [
      ...phases.filter(({ phase }) => phase !== "deprecated")
        .map(({ phase, calls }) => `${count(calls)} ${phase}`),
      ...brownouts.filter((interval) => interval.start < end && start < interval.end)
        .map(({ start, end }) =>
          `brownout window ${formatInstant(start)} to ${formatInstant(end)}`
        ),
      ...(start <= sunsetAt && sunsetAt < end ? ["sunset"] : []),
      ...(day === today ? ["so far"] : []),
      ...(isWhole ? [] : [NOT_WHOLE]),
    ];
    return `<tr><th scope="row">${day}</th><td class="number">${count(calls)}</td>` +
      `<td><div class="bars">${bars.join("")}</div>${notes.join(", ")}</td></tr>`;
  });
  return `<div class="scroll days" tabindex="0" role="region" aria-label="Calls to ${
    escape(route)
  } per day">
<table><thead><tr><th scope="col">Day</th><th scope="col" class="number">Calls</th>
<th scope="col">Phases</th></tr></thead>
<tbody>${rows.join("\n")}</tbody></table>
</div>`;
}

function clientSection(report: UsageReport): string {
  const { clients } = report;
  const since = `<p class="note">${escape(sinceText(report))}</p>`;
  if (clients.length === 0) {
    return `<section><h2>Clients</h2><p>No clients called.</p>${since}</section>`;
  }
  const number = (title: string) => title === "Calls" ? 'class="number" ' : "";
  const titles = CLIENT_COLUMNS.map(([title]) => `<th ${number(title)}scope="col">${title}</th>`);
  const rows = clients.map((usage) => {
    const cells = CLIENT_COLUMNS.slice(1).map(([title, cellOf]) =>
      `<td ${number(title)}data-label="${title}">${escape(cellOf(usage))}</td>`
    );
    return `<tr><th scope="row">${escape(usage.client)}</th>${cells.join("")}</tr>`;
  });
  return `<section>
<h2>Clients</h2>
${since}
<div class="scroll" tabindex="0" role="region" aria-label="Clients">
<table class="clients"><thead><tr>${titles.join("")}</tr></thead>
<tbody>${rows.join("\n")}</tbody></table>
</div>
</section>`;
}
