/** The retirement report for the operator, as a self-contained page. */

import { escape } from "../../pages/html.ts";
import type { RouteUsage, UsageReport } from "../verdict/report.ts";
import type { ClientUsage } from "../verdict/sums.ts";
import { basisItems } from "./basis_sentences.ts";
import {
  hasManyRoutes,
  periodText,
  requestsText,
  RULES,
  sinceText,
  sunsetText,
  titleText,
} from "./call_sentences.ts";
import { columnsOf } from "./client_columns.ts";
import { picture } from "./picture.ts";
import {
  capitalized,
  details,
  htmlOf,
  list,
  listOfItems,
  p,
  pathText,
  type Phrase,
  type ProgramNames,
} from "./phrase.ts";
import { OPERATOR_PAGE_STYLE, reportPage } from "./report_page.ts";
import { causeLines, dueLines, routeLines, verdictAlone } from "./verdict_sentences.ts";
import { MAX_LISTED, plural } from "./wording.ts";

/** The style's class for the colour of each verdict. */
const COLOURS = {
  clear: "announced",
  announced: "announced",
  called: "brownout",
  unknown: "deprecated",
};

export function usagePage(report: UsageReport, names: ProgramNames): string {
  const { routes, state, judged } = report;
  const { name, clause } = verdictAlone(report);
  const isOfSeveral = judged.length > 1;
  const leftOut = isOfSeveral ? "What the verdicts leave out" : "What the verdict leaves out";
  const paragraph = (line: Phrase) => `<p>${htmlOf(line, names)}</p>`;
  return reportPage(
    titleText(report),
    OPERATOR_PAGE_STYLE,
    `<p>${htmlOf(p`${periodText(report)}.`)}</p>
<section class="banner ${COLOURS[state]}" aria-label="Verdict">
<p><strong>${htmlOf(name)}.</strong> ${htmlOf(p`${capitalized(clause)}.`)}</p>
</section>
${section("Why it is unknown", causeLines(report).map(paragraph).join("\n"))}
${section("The verdict on each route", list(routeLines(report), names))}
${section("Who may call again", list(dueLines(report, isOfSeveral)))}
${section(leftOut, listOfItems(basisItems(report), names))}
${clientSection(report)}
${routes.map((route) => routeSection(route, report)).join("\n")}
${section("What is counted", list([...RULES.map((rule) => [rule]), sinceText(report)]))}`,
  );
}

/** Renders a section, unless there is nothing in it. */
function section(title: string, html: string): string {
  return html === "" ? "" : `<section>\n<h2>${title}</h2>\n${html}\n</section>`;
}

function clientSection({ clients }: UsageReport): string {
  const more = clients.slice(MAX_LISTED);
  return `<section>
<h2>Who calls</h2>
${clients.length === 0 ? "<p>No clients called.</p>" : clientTable(clients.slice(0, MAX_LISTED))}
${more.length === 0 ? "" : details(plural(more.length, "more client"), clientTable(more))}
</section>`;
}

const NUMBER = ' class="number"';

function clientTable(clients: readonly ClientUsage[], columns = columnsOf(clients)): string {
  const titles = columns.map(({ title, isNumber }) =>
    `<th scope="col"${isNumber ? NUMBER : ""}>${title}</th>`
  );
  const rows = clients.map((usage) => {
    const cells = columns.slice(1).map(({ title, cellOf, isNumber }) =>
      `<td data-label="${title}"${isNumber ? NUMBER : ""}>${htmlOf(cellOf(usage))}</td>`
    );
    return `<tr><th scope="row"><span>${escape(usage.client)}</span></th>${cells.join("")}</tr>`;
  });
  return `<table><thead><tr>${titles.join("")}</tr></thead>
<tbody>${rows.join("\n")}</tbody></table>`;
}

function routeSection(usage: RouteUsage, report: UsageReport): string {
  const { policies, routes } = report;
  const { route, calls, clients } = usage;
  return `<section>
<h2><code>${escape(pathText(route))}</code></h2>
<p>${requestsText(usage)}. ${htmlOf(sunsetText(policies[route]))}</p>
${calls === 0 ? "" : picture(usage, policies[route], hasManyRoutes(report))}
${routes.length === 1 || clients.length === 0 ? "" : routeClients(clients)}
</section>`;
}

/** Renders the clients of one route, folded away. */
function routeClients(clients: readonly ClientUsage[]): string {
  const columns = columnsOf(clients).filter(({ isOfRoute }) => isOfRoute);
  return details(plural(clients.length, "client"), clientTable(clients, columns));
}
