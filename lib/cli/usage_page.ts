/**
 * The retirement report as one page that needs no network: to send to the people who own the
 * clients. It is good without a script; with one, its table sorts.
 */

import { escape } from "../html.ts";
import { formatInstant, type Interval, type Phase, PHASES } from "../lifecycle/policy.ts";
import type { ClientUsage, Report, RouteUsage, Verdict } from "../lifecycle/report.ts";
import { PAGE_SCRIPT, PAGE_STYLE } from "./usage_page_assets.ts";
import { callsText, count, sunsetText, trendText, verdictText } from "./usage_text.ts";

/** The page as HTML. */
export function usagePage(report: Report, verdict: Verdict): string {
  const { from, to, routes, clients, calls } = report;
  const days = routes[0]?.days.length ?? 0;
  const [headline, ...details] = verdictText(verdict, days).split("\n");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>Calls of deprecated routes, ${from} to ${to}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<main>
<header>
<h1>Who still calls the deprecated routes</h1>
<p class="lead">${from} to ${to}, ${count(days)} days, UTC · ${callsText(calls)}</p>
</header>
<section class="verdict ${verdict.verdict}" aria-label="Verdict">
<p><strong>${escape(headline ?? "")}</strong></p>
${
    details.length === 0
      ? ""
      : `<ul>${details.map((line) => `<li>${escape(line.trim())}</li>`).join("")}</ul>`
  }
<p>${escape(sunsetText(report))}</p>
</section>
${routes.map((route) => routeSection(route, report)).join("\n")}
${clientSection(clients)}
</main>
<script>${PAGE_SCRIPT}</script>
</body>
</html>
`;
}

function routeSection(usage: RouteUsage, report: Report): string {
  const { route, calls, previousCalls, days } = usage;
  const path = escape(route.replace(":token", "{token}"));
  return `<section>
<h2><code>${path}</code></h2>
<p>${callsText(calls)}, ${trendText(calls, previousCalls)} against the ${
    count(days.length)
  } days before</p>
${chart(usage, report)}
</section>`;
}

/** The chart's own units. */
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [720, 220, 56, 28, 12];

/** Calls a day as bars, stacked by phase; brownouts are shaded, and the sunset is a line. */
function chart({ route, days }: RouteUsage, { policy }: Report): string {
  const most = niceCeiling(Math.max(...days.map(({ calls }) => calls), 1));
  const start = Date.parse(`${days[0]?.day}T00:00Z`);
  const step = (WIDTH - LEFT) / days.length;
  const x = (instant: number) => LEFT + (instant - start) / 86_400_000 * step;
  const y = (calls: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - calls / most);
  const end = start + days.length * 86_400_000;

  const shades = policy.brownouts.filter((interval) => overlaps(interval, { start, end }))
    .map((interval) => {
      const [from, to] = [x(Math.max(interval.start, start)), x(Math.min(interval.end, end))];
      const width = Math.max(to - from, 2);
      const title = `Brownout ${formatInstant(interval.start)} to ${formatInstant(interval.end)}`;
      return `<rect class="shade" x="${px(from)}" y="${TOP}" width="${px(width)}" ` +
        `height="${HEIGHT - TOP - BOTTOM}"><title>${title}</title></rect>`;
    });
  const bars = days.map(({ day, byPhase }, index) => {
    let below = 0;
    const left = LEFT + index * step + step * 0.1;
    return PHASES.map((phase) => {
      const calls = byPhase[phase] ?? 0;
      if (calls === 0) return "";
      const [base, top] = [y(below), y(below += calls)];
      return `<rect class="${phase}" x="${px(left)}" y="${px(top)}" width="${px(step * 0.8)}" ` +
        `height="${px(base - top)}"><title>${day}: ${count(calls)} ${phase}</title></rect>`;
    }).join("");
  });
  const sunset = policy.sunsetAt;
  const line = sunset === undefined || sunset < start || sunset > end
    ? ""
    : `<line class="sunset" x1="${px(x(sunset))}" x2="${px(x(sunset))}" y1="0" y2="${
      HEIGHT - BOTTOM
    }">` +
      `<title>Sunset ${formatInstant(sunset)}</title></line>`;
  const grid = [0, 0.5, 1].map((part) => {
    const at = y(most * part);
    return `<line class="grid" x1="${LEFT}" x2="${WIDTH}" y1="${px(at)}" y2="${px(at)}"/>` +
      `<text x="${LEFT - 8}" y="${px(at + 4)}" text-anchor="end">${count(most * part)}</text>`;
  });
  const every = Math.ceil(days.length / 6);
  const labels = days.map(({ day }, index) =>
    index % every !== 0
      ? ""
      : `<text x="${px(LEFT + (index + 0.5) * step)}" y="${HEIGHT - 8}" text-anchor="middle">${
        day.slice(5)
      }</text>`
  );
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Calls of ${
    escape(route)
  } a day">
${shades.join("")}${grid.join("")}${bars.join("")}${line}${labels.join("")}
</svg>
${
    legend(
      days.flatMap(({ byPhase }) => Object.keys(byPhase) as Phase[]),
      shades.length > 0,
      line !== "",
    )
  }
${dayTable(days)}`;
}

const PHASE_NAMES: Readonly<Record<Phase, string>> = {
  announced: "calls before the deprecation",
  deprecated: "calls while deprecated",
  brownout: "calls in a brownout",
  removed: "calls after the removal",
};

function legend(phases: readonly Phase[], hasBrownouts: boolean, hasSunset: boolean): string {
  const items = PHASES.filter((phase) => phases.includes(phase))
    .map((phase) => `<li><span class="key ${phase}"></span>${PHASE_NAMES[phase]}</li>`);
  if (hasBrownouts) items.push('<li><span class="key shade"></span>brownout window</li>');
  if (hasSunset) items.push('<li><span class="key sunset"></span>sunset</li>');
  return items.length === 0 ? "" : `<ul class="legend">${items.join("")}</ul>`;
}

/** What the chart shows, for those who cannot see it. */
function dayTable(days: RouteUsage["days"]): string {
  const rows = days.map(({ day, calls }) => `<tr><td>${day}</td><td>${count(calls)}</td></tr>`);
  return `<details><summary>The same in numbers</summary>
<table><thead><tr><th scope="col">Day</th><th scope="col">Calls</th></tr></thead>
<tbody>${rows.join("")}</tbody></table></details>`;
}

function clientSection(clients: readonly ClientUsage[]): string {
  if (clients.length === 0) return "<section><h2>Clients</h2><p>No client called.</p></section>";
  const columns = ["Client", "Calls", "Period before", "First seen", "Last seen", "Routes"];
  const heads = columns.map((name) => `<th scope="col"><span>${name}</span></th>`);
  const rows = clients.map(({ client, calls, previousCalls, first, last, routes }) =>
    `<tr><th scope="row">${escape(client)}</th>` +
    `<td data-sort="${calls}">${count(calls)}</td>` +
    `<td data-sort="${previousCalls}">${count(previousCalls)}</td>` +
    `<td>${formatInstant(first)}</td><td>${formatInstant(last)}</td>` +
    `<td>${escape(routes.map((route) => route.replace("/:token", "")).join(", "))}</td></tr>`
  );
  return `<section>
<h2>Clients</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Clients">
<table class="clients"><thead><tr>${heads.join("")}</tr></thead>
<tbody>${rows.join("\n")}</tbody></table>
</div>
</section>`;
}

function overlaps(a: Interval, b: Interval): boolean {
  return a.start < b.end && b.start < a.end;
}

/** The next number of one digit and zeros, and even, so that its half is whole. */
function niceCeiling(value: number): number {
  const unit = 10 ** Math.floor(Math.log10(value));
  const nice = Math.ceil(value / unit) * unit;
  return nice % 2 === 0 ? nice : nice + Math.max(1, unit);
}

function px(value: number): string {
  return String(Math.round(value * 100) / 100);
}
