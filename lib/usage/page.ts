/** The retirement report for the operator, as a self-contained page. */

import { escape, pathText } from "../pages/html.ts";
import type { ClientUsage, RouteUsage, UsageReport } from "./report.ts";
import { details, list, picture, prose, reportPage } from "./page_html.ts";
import { PAGE_STYLE } from "./page_style.ts";
import {
  basisLines,
  columnsOf,
  doubtLines,
  MAX_LISTED,
  periodText,
  plural,
  requestsText,
  RULES,
  sinceText,
  sunsetText,
  titleText,
  verdictText,
} from "./sentences.ts";

/** The style's class for the colour of each verdict. */
const COLOURS = { clear: "announced", called: "brownout", unknown: "deprecated" };

export function usagePage(report: UsageReport): string {
  const { routes, verdict: { verdict } } = report;
  return reportPage(
    titleText(report),
    PAGE_STYLE,
    `<p>${prose(periodText(report))}</p>
<section class="banner ${COLOURS[verdict]}" aria-label="Verdict">
<p><strong>${prose(verdictText(report))}</strong></p>
${list([...doubtLines(report), ...basisLines(report)])}
</section>
${clientSection(report)}
${routes.map((route) => routeSection(route, report)).join("\n")}
<section>
<h2>What is counted</h2>
${list([...RULES, sinceText(report)])}
</section>`,
  );
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
      `<td data-label="${title}">${prose(cellOf(usage))}</td>`
    );
    return `<tr><th scope="row"><span>${escape(usage.client)}</span></th>${cells.join("")}</tr>`;
  });
  return `<table><thead><tr>${titles.join("")}</tr></thead>
<tbody>${rows.join("\n")}</tbody></table>`;
}

function routeSection(usage: RouteUsage, { policies }: UsageReport): string {
  const { route, calls } = usage;
  return `<section>
<h2><code>${escape(pathText(route))}</code></h2>
<p>${requestsText(usage)}. ${prose(sunsetText(policies[route]))}</p>
${calls === 0 ? "" : picture(usage, policies[route])}
</section>`;
}
