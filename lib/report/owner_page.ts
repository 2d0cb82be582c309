/** The page for the owner of one client: what to change, by when, and the evidence. */

import { escape } from "@std/html/entities";
import { noticeAt, noticesOf } from "../documents/notice.ts";
import { code, contactText } from "../documents/notice_html.ts";
import { changes, dates } from "../documents/notice_state.ts";
import { formatInstant } from "../lifecycle/policy.ts";
import { pathOf, type Route, withToken } from "../server/route.ts";
import type { ServerConfig } from "../server/server.ts";
import { list, picture, prose, reportPage } from "./page_html.ts";
import { PICTURE_STYLE } from "./page_style.ts";
import type { ClientUsage, UsageReport } from "./report.ts";
import { plural, RULES } from "./words.ts";

/**
 * Renders the page of the only client in a report.
 *
 * @param addresses Where clients reach the server, and where their owners reach the operator; the page
 *   leaves out what is unknown.
 */
export function ownerPage(
  report: UsageReport,
  routes: readonly Route[],
  { publicUrl, contact }: Pick<ServerConfig, "publicUrl" | "contact">,
): string {
  const { client = "", clients: [usage], policies, now, from } = report;
  const called = report.routes.filter(({ calls }) => calls > 0);
  const endpoints = routes.flatMap((route) => {
    const path = pathOf(route);
    const [policy, successor] = [policies[path], route.successor];
    const isCalled = called.some((usage) => usage.route === path);
    if (!isCalled || policy === undefined || successor === undefined) return [];
    const paths = { path: withToken(path, "{token}"), successor: withToken(successor, "{token}") };
    return [{ ...paths, methods: [], policy }];
  });
  const name = client.replace(/^(?:app|id|site) /, "");
  const paths = `paths${publicUrl === undefined ? "" : ` of ${new URL(publicUrl).host}`}`;
  const [first] = endpoints;
  if (usage === undefined || first === undefined) {
    const title = `${name} called no deprecated ${paths}`;
    return reportPage(title, "", `<p>${prose(`No call was recorded since ${from}.`)}</p>`);
  }
  const notice = noticeAt(first.policy, endpoints, { now });
  const isRemoved = noticesOf(notice).map(({ phase }) => phase === "removed");
  const future = isRemoved.includes(true) ? "were or will be" : "will be";
  const page = URL.parse(first.policy.documentation ?? "/deprecation", publicUrl)?.href;
  const total = `${plural(usage.calls, "call")} since ${from}, the last recorded at ` +
    `${formatInstant(usage.last)}. ${RULES[0]}`;
  const pictures = called.map((usage) =>
    `<h3>${code(withToken(usage.route, "{token}"))}</h3>\n${picture(usage, policies[usage.route])}`
  );
  return reportPage(
    `${name} still calls ${paths} that ${isRemoved.includes(false) ? future : "were"} removed`,
    PICTURE_STYLE,
    `<h2>What to change</h2>
${changes(notice)}
<h2>By when</h2>
${dates(notice, now)}
${page ? `<p>Read the notice at <a href="${escape(page)}">${escape(page)}</a>.</p>` : ""}
${contactText(contact)}
<h2>Calls by ${escape(name)}</h2>
<p>${prose(total)}</p>
${releases(usage)}
${pictures.join("\n")}`,
  );
}

function releases({ client, calls, releases }: ClientUsage): string {
  if (releases.length === 0) return "";
  const unnamed = calls - releases.reduce((sum, { calls }) => sum + calls, 0);
  const [title, one] = client.startsWith("app ") ? ["By release", "release"] : ["By app", "app"];
  const limit = unnamed > 0 ? `; ${plural(unnamed, "call")} have no ${one} on record` : "";
  const lines = releases.map(({ release, calls, last }) =>
    `${release}: ${plural(calls, "call")}, the last recorded at ${formatInstant(last)}`
  );
  return `<h3>${title}</h3>
${list(lines)}
<p>In this period no other ${one} was seen${limit}. Name and release are what a client says in
<code>User-Agent</code>.</p>`;
}
