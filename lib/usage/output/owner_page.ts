/** The page for a client's owner: what to change, by when, and the evidence. */

import { noticeAt } from "../../lifecycle/notice.ts";
import { code, escape } from "../../pages/html.ts";
import { changes, contactLink, dates } from "../../pages/notice_parts.ts";
import { listOf } from "../../pages/plain_text.ts";
import { bareNameOf, clientKindOf } from "../record/client_names.ts";
import { announcedPolicies, judgedRoutes } from "../verdict/announcements.ts";
import type { ReadSession } from "../verdict/evidence.ts";
import type { UsageReport } from "../verdict/report.ts";
import { callsIn, type ClientUsage } from "../verdict/sums.ts";
import { RULES, sinceText } from "./call_sentences.ts";
import { brownoutTexts } from "./client_sentences.ts";
import { picture } from "./picture.ts";
import {
  code as codeName,
  date,
  enumerated,
  htmlOf,
  instant,
  list,
  p,
  path as routePath,
  pathText,
  type Phrase,
} from "./phrase.ts";
import { PICTURE_STYLE, reportPage } from "./report_page.ts";
import { plural } from "./wording.ts";

/** The facts on the page besides the report. Unknown ones are left out. */
export interface OwnerPageOptions {
  /** All sessions. Their policies show what was announced, and when. */
  readonly sessions: readonly ReadSession[];
  /** Returns the path that replaces a route, if any, e.g. `/media/:token`. */
  readonly successorOf?: ((route: string) => string | undefined) | undefined;
  /** The URL at which clients reach the server. */
  readonly publicUrl?: string | undefined;
  /** The URL of the operator's contact: `mailto:` or `https:`. */
  readonly contact?: string | undefined;
}

/** Renders the page from a report on one client. */
export function ownerPage(report: UsageReport, options: OwnerPageOptions): string {
  const { sessions, successorOf, publicUrl, contact } = options;
  const { client = "", clients: [usage], policies, asOf: now, from } = report;
  const called = report.routes.filter(({ calls }) => calls > 0);
  const endpoints = called.flatMap(({ route }) => {
    const policy = policies[route];
    if (policy === undefined) return [];
    const successor = successorOf?.(route);
    const replaced = successor === undefined ? {} : { successor: pathText(successor) };
    return [{ path: pathText(route), ...replaced, methods: [], policy }];
  });
  const name = bareNameOf(client);
  const host = publicUrl === undefined ? "" : ` of ${new URL(publicUrl).host}`;
  const origin = `<p>${htmlOf(p`Made at ${instant(now)} by the operator${host}.`)}</p>`;
  const [first] = endpoints;
  if (usage === undefined || first === undefined) {
    const text = `<p>${htmlOf(p`No call was recorded since ${date(from)}.`)}</p>`;
    return reportPage(`${name} called no deprecated paths${host}`, "", `${origin}\n${text}`);
  }
  const notice = noticeAt(first.policy, endpoints, { now });
  const running = sessions.filter(({ isOver }) => !isOver); // which may have no route left
  const served = running.length > 0
    ? Object.keys(announcedPolicies(running))
    : judgedRoutes(sessions);
  const gone = called.flatMap(({ route }) => served.includes(route) ? [] : [pathText(route)]);
  const isRemoved = notice.endpoints
    .map(({ phase, path }) => phase === "removed" || gone.includes(path));
  const future = isRemoved.includes(true) ? "were or will be" : "will be";
  const { documentation } = first.policy;
  const hasPage = documentation !== undefined && URL.canParse(documentation, publicUrl);
  const page = hasPage ? new URL(documentation, publicUrl).href : undefined;
  const change = changes(notice);
  const pictures = called.map((each) =>
    `<h3>${code(pathText(each.route))}</h3>\n${picture(each, policies[each.route])}`
  );
  return reportPage(
    `${name}: deprecated paths${host}`,
    PICTURE_STYLE,
    `${origin}
<p>${escape(name)} calls ${listOf(endpoints.map(({ path }) => code(path)))}.</p>
<h2>By when</h2>
${dates(notice, { now, gone })}
${change && `<h2>What to change</h2>\n${change}`}
${page ? `<p>Read the notice at <a href="${escape(page)}">${escape(page)}</a>.</p>` : ""}
${contactLink(contact)}
<h2>Calls by ${escape(name)}</h2>
${renderCalls(usage, report)}
${list(called.map(({ route }) => announcementText(route, report, sessions)))}
${renderReleases(usage, report)}
${pictures.join("\n")}`,
    `${name} still calls paths${host} that ${isRemoved.includes(false) ? future : "were"} removed`,
  );
}

/** Renders the number of calls, and the number in each brownout. */
function renderCalls({ calls, last, brownouts }: ClientUsage, report: UsageReport): string {
  const total = p`${plural(calls, "call")} since ${date(report.from)}, the last recorded at
    ${instant(last)}. ${RULES[0]} ${sinceText(report)}`;
  return `<p>${htmlOf(total)}</p>\n${list(brownoutTexts(brownouts))}`;
}

/** Says since when a route's responses have announced its retirement, by the policies on record. */
function announcementText(
  route: string,
  report: UsageReport,
  sessions: readonly ReadSession[],
): Phrase {
  const announcing = sessions.filter(({ policies }) => Object.hasOwn(policies, route));
  const since = Math.min(...announcing.map(({ began }) => began));
  const undated = announcing.filter(({ policies }) => policies[route]?.sunsetAt === undefined);
  const dated = Math.max(since, ...undated.map(({ reported }) => reported));
  const hasDate = report.policies[route]?.sunsetAt !== undefined;
  // Without documentation, only a response with a successor has a Link.
  const hasLink = announcing.every(({ policies }) => policies[route]?.documentation !== undefined);
  const fields = ["Deprecation"];
  if (hasDate && dated === since) fields.push("Sunset");
  if (hasLink) fields.push("Link");
  const later = hasDate && dated > since
    ? p`, and with ${codeName("Sunset")} since ${instant(dated)}`
    : [];
  return p`By the record, every call to ${routePath(route)} has been answered with
    ${enumerated(fields.map((field) => [codeName(field)]))} since ${instant(since)}${later}.`;
}

function renderReleases({ client, calls, releases }: ClientUsage, { from }: UsageReport): string {
  if (releases.length === 0) return "";
  const unnamed = calls - callsIn(releases);
  const [title, one] = clientKindOf(client) === "app"
    ? ["By release", "release"]
    : ["By app", "app"];
  const have = unnamed === 1 ? "has" : "have";
  const limit = unnamed > 0 ? `; ${plural(unnamed, "call")} ${have} no ${one} on record` : "";
  const lines = releases.map(({ release, calls, last }) =>
    p`${release}: ${plural(calls, "call")}, the last recorded at ${instant(last)}`
  );
  return `<h3>${title}</h3>
${list(lines)}
<p>${htmlOf(p`No other ${one} is on record since ${date(from)}${limit}.`)}
Name and release are what a client says in <code>User-Agent</code>.</p>`;
}
