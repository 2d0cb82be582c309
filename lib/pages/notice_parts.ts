/** The parts of a notice that several pages have: its dates, what to change, and whom to ask. */

import { type EndpointNotice, type Notice, noticesOf } from "../lifecycle/notice.ts";
import { code, escape, time } from "./html.ts";
import { listOf } from "./plain_text.ts";

/** Lists the paths of notices in a sentence. */
export function pathList(notices: readonly Notice[]): string {
  return listOf(notices.flatMap(({ endpoints }) => endpoints.map(({ path }) => code(path))));
}

/**
 * Renders a part for each endpoint. Equal parts are rendered once.
 *
 * @param render Is given a prefix: the paths that the part is about if others differ, else nothing.
 */
export function sayOnce(
  notice: Notice,
  render: (notice: EndpointNotice, prefix: string) => string,
): string {
  // Reports run on Node 20, which has no Map.groupBy().
  const groups = new Map<string, [EndpointNotice, ...EndpointNotice[]]>();
  for (const each of noticesOf(notice)) {
    const part = render(each, "");
    const group = groups.get(part);
    groups.set(part, group === undefined ? [each] : [...group, each]);
  }
  return [...groups].map(([part, group]) =>
    groups.size === 1 ? part : render(group[0], `${pathList(group)}: `)
  ).join("\n");
}

/** Renders the changes to a request; empty if no endpoint has a successor. */
export function changes({ endpoints }: Notice): string {
  const lines = endpoints.flatMap(({ path, successor }) =>
    successor === undefined ? [] : [`<li>${code(path)} becomes ${code(successor)}</li>`]
  );
  if (lines.length === 0) return "";
  return `<p>Change only the path. Change it in stored URLs, too: in feeds, download queues and
databases. If you read the feeds of others, change it whenever you read them. The token, the content
and its <code>ETag</code> stay the same, and so do ranges and conditional requests:</p>
<ul>
${lines.join("\n")}
</ul>`;
}

/** What the dates of a notice depend on. */
interface DatesOptions {
  /** Milliseconds since the epoch. Brownouts that have ended by then are left out. */
  readonly now: number;
  /** The paths that no server has any more. */
  readonly gone?: readonly string[];
}

/** Renders the dates, and what brownouts and the removal do. None of it expires. */
export function dates(notice: Notice, options: DatesOptions): string {
  return `<dl class="facts">
${sayOnce(notice, deprecation)}
${sayOnce(notice, removal)}
</dl>
${sayOnce(notice, (each, prefix) => calendar(each, prefix, options))}
${sayOnce(notice, holds)}
${sayOnce(notice, (each, prefix) => effects(each, prefix, options))}`;
}

function deprecation({ deprecatedAt }: EndpointNotice, prefix: string): string {
  return `<div><dt>${prefix}Deprecated from</dt>
<dd>${time(deprecatedAt)}</dd></div>`;
}

function removal({ sunsetAt }: EndpointNotice, prefix: string): string {
  return `<div><dt>${prefix}Removal</dt>
<dd>${sunsetAt === null ? "No date set yet" : time(sunsetAt)}</dd></div>`;
}

function isGone({ endpoints }: EndpointNotice, { gone = [] }: DatesOptions): boolean {
  return endpoints.every(({ path }) => gone.includes(path));
}

function brownoutsLeft(
  notice: EndpointNotice,
  options: DatesOptions,
): EndpointNotice["brownouts"] {
  if (isGone(notice, options)) return [];
  return notice.brownouts.filter(({ end }) => options.now < Date.parse(end));
}

function calendar(notice: EndpointNotice, prefix: string, options: DatesOptions): string {
  const left = brownoutsLeft(notice, options);
  const differ = new Set(left.map(({ status }) => status)).size > 1;
  const rows = left.map(({ start, end, status }) =>
    `<li>${prefix}Brownout from ${time(start)} to ${time(end)}` +
    `${differ ? `, with ${code(String(status))}` : ""}</li>`
  );
  return rows.length === 0 ? "" : `<ul>\n${rows.join("\n")}\n</ul>`;
}

/** Says until when the path was held, why, and what that called off. */
function holds({ holds }: EndpointNotice, prefix: string): string {
  const rows = holds.map(({ end, because, brownouts, sunsetAt }) => {
    const effects = brownouts.map(({ start, end }) =>
      `the brownout from ${time(start)} to ${time(end)} was called off`
    );
    if (sunsetAt !== null) effects.push(`the removal on ${time(sunsetAt)} was put off until then`);
    const effect = effects.length === 0 ? "" : `: ${listOf(effects)}`;
    return `<li>${prefix}Held until ${time(end)} (${escape(because)})${effect}</li>`;
  });
  return rows.length === 0 ? "" : `<ul>\n${rows.join("\n")}\n</ul>`;
}

/** Says what the path answers in the brownouts that are listed, and after the removal. */
function effects(notice: EndpointNotice, prefix: string, options: DatesOptions): string {
  const { afterSunset } = notice;
  if (isGone(notice, options)) {
    return `<p>${prefix}The path is gone: it answers ${code("404")}, like any unknown path.</p>`;
  }
  const statuses = new Set(brownoutsLeft(notice, options).map(({ status }) => status));
  const brownouts = statuses.size === 0
    ? ""
    : "A brownout is a short planned outage that warns of the removal: the path answers " +
      `${[...statuses].map((status) => code(String(status))).join(" or ")}, with ` +
      `${code("Retry-After")} set to the end of the brownout. `;
  const [answer, effect] = afterSunset === "redirect"
    ? ["308", "which redirects to the item's new path at the cost of an extra request"]
    : ["410", "and clients that still use it fail"];
  const when = notice.phase === "removed" ? "The" : "Once removed, the";
  return `<p>${prefix}${brownouts}${when} path answers ${code(answer)}, ${effect}.
Eventually it will answer ${code("404")}, like any unknown path.</p>`;
}

/** Renders a link to the operator's contact; empty without one. */
export function contactLink(contact: string | null | undefined): string {
  if (!contact) return "";
  const { protocol, pathname } = new URL(contact);
  const text = protocol === "mailto:" ? pathname : contact;
  return `<p>Contact the operator: <a href="${escape(contact)}">${escape(text)}</a></p>`;
}

/** Fails, and prints why, if a URL announces a retirement, answers an error, or does not answer. */
const SHELL_LINE = "curl --silent --show-error --head URL | awk " +
  "'/^HTTP/ && $2 >= 400 || tolower($0) ~ /^(deprecation|sunset):/ { print; bad = 1 } " +
  "END { exit bad || NR == 0 }'";

/** Says how the CI of a client finds out that a URL is being retired. */
export function checkInCi(): string {
  return `<p>In CI, ${
    code("lifecycle check --expect none URL…")
  } fails if a URL that the client calls
announces a retirement. The program is in the npm package ${code("@media-head/lifecycle")}, which is
in no registry yet: ask the operator of this server for its tarball. Without it, this line of a shell
fails for a URL that announces one or answers an error:</p>
<p>${code(SHELL_LINE)}</p>`;
}
