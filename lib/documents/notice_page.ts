/** The retirement notice for people: a self-contained page that is complete without its script. */

import type { ProblemType } from "../http/problem.ts";
import { type Notice, noticesOf } from "../lifecycle/notice.ts";
import { code, escape, htmlPage } from "../pages/html.ts";
import { changes, contactLink, dates, pathList } from "../pages/notice_parts.ts";
import { listOf } from "../pages/plain_text.ts";
import { PAGE_STYLE } from "../pages/style.ts";
import { state } from "./notice_state.ts";

/** Adds the local time to every date, unless the reader's time zone is UTC. */
const PAGE_SCRIPT = `
const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll("time")) {
  const date = new Date(time.dateTime);
  if (date.getTimezoneOffset() === 0) continue;
  const local = document.createElement("span");
  local.className = "local";
  local.lang = format.resolvedOptions().locale;
  local.textContent = " (" + format.format(date) + " your time)";
  time.append(local);
}
`;

/** A clock. Without an icon, browsers would request /favicon.ico. */
const ICON = `data:image/svg+xml,${
  encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke="#b26a00" ` +
      `stroke-width="4" stroke-linecap="round" stroke-linejoin="round"><circle cx="16" cy="16" ` +
      `r="13"/><path d="M16 8v8l5 4"/></svg>`,
  )
}`;

/** Allows the page's own style and script by digest (CSP Level 3 §2.3.1), and its icon. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src '${await hashOf(PAGE_STYLE)}'`,
  `script-src '${await hashOf(PAGE_SCRIPT)}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** The facts on the page besides the notice. */
interface NoticePageOptions {
  /** The paths at which items stay, and what each serves. */
  readonly items: readonly { readonly path: string; readonly serves: string }[];
  /** The problem types to explain, by id. */
  readonly types: Readonly<Record<string, ProblemType>>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export function noticePage(
  notice: Notice,
  { items, types, now }: NoticePageOptions,
): { html: string; contentSecurityPolicy: string } {
  const { endpoints, contact } = notice;
  const isOver = endpoints.length === 0;
  const html = htmlPage(
    isOver ? OVER : `Retirement of ${listOf(endpoints.map(({ path }) => path))}`,
    `<link rel="icon" href="${ICON}">`,
    `<h1>${headline(notice)}</h1>
${isOver ? contactLink(contact) : retirement(notice, now)}
${whereItemsAre(items)}
${errors(types, notice)}
<script>${PAGE_SCRIPT}</script>`,
  );
  return { html, contentSecurityPolicy: CONTENT_SECURITY_POLICY };
}

/** The headline once the deprecated routes are deleted. */
const OVER = "The older paths were removed";

/** Says which paths are going away and which were removed. */
function headline(notice: Notice): string {
  const groups = Map.groupBy(noticesOf(notice), ({ phase }) => phase === "removed");
  const parts = [...groups].map(([isRemoved, notices]) => {
    const [is, what] = isRemoved ? [["was", "were"], "removed"] : [["is", "are"], "going away"];
    return `${pathList(notices)} ${is[notices.length === 1 ? 0 : 1]} ${what}`;
  });
  return parts.join(", ") || OVER;
}

/** Says where items are, for clients that use a path which is no longer listed, too. */
function whereItemsAre(items: NoticePageOptions["items"]): string {
  const rows = items.map(({ path, serves }) => `<li>${code(path)}: ${escape(serves)}</li>`);
  return `<section>
<h2>Where items are</h2>
<ul>
${rows.join("\n")}
</ul>
<p>Any other path to an item that worked earlier was deleted. It answers ${code("404")} without
${code("Deprecation")}, which says nothing about the item. In such a URL, change the path and keep
the token: the content and its ${code("ETag")} are the same. The OpenAPI description of all paths is
at <a href="/openapi.json">/openapi.json</a>.</p>
</section>`;
}

/** Renders the state, what to do, the dates, and what programs get from the old paths. */
function retirement(notice: Notice, now: number): string {
  const { endpoints } = notice;
  const isRemoved = endpoints.every(({ phase }) => phase === "removed");
  const isRedirected = endpoints.some(({ afterSunset }) => afterSunset === "redirect");
  const test = isRemoved && !isRedirected
    ? ""
    : `<p>To check that a client has moved, block the old paths in a test, with
a mock or a debugging proxy: the client should work as before.</p>
<p>In CI, ${
      code("lifecycle check --expect none URL…")
    } fails if a URL that the client calls announces
a retirement. The program is in the npm package ${code("@media-head/lifecycle")}, which is in no
registry yet: ask the operator of this server for its tarball. Without it, see whether
${code("curl --head URL")} shows ${code("Deprecation")} or ${code("Sunset")}.</p>`;
  const signs = isRemoved ? [] : [
    `A date in ${code("Retry-After")} means a brownout: the successor works meanwhile.`,
    `Any other ${code("5xx")} means a fault. If ${
      code("Retry-After")
    } has seconds, retry after them.`,
    `Without ${code("Retry-After")}, a ${code("410")} means the removal once ${code("Sunset")} ` +
    "has passed. Before that, and without a date, it means that the item was unpublished.",
  ];
  const lookup = `${isRemoved ? "Items" : "In a brownout and after the removal, items"} are not ` +
    "looked up: only the replacement tells whether an item exists.";
  return `${state(notice)}
<section>
<h2>What to do</h2>
${changes(notice)}
${test}
</section>
<section>
<h2>Dates</h2>
${dates(notice, { now })}
${contactLink(notice.contact)}
</section>
<section>
<h2>For programs</h2>
<p>Every response from the old paths, errors included, has these fields:</p>
<ul>
<li>${code("Deprecation: @SECONDS")} (${rfc(9745)}): the date from which the path is deprecated, in
Unix seconds.</li>
<li>${code("Sunset: DATE")} (${rfc(8594)}), once a date is set: the date on which the path is
removed.</li>
<li>${code("Link")} (${rfc(8288)}): ${code("successor-version")} leads to the item's replacement,
unless the response says that the item was unpublished or never published, or the token malformed; ${
    code("deprecation")
  } and
${code("sunset")} lead to this notice.</li>
</ul>
<p>Only a request whose ${code("Host")} is invalid gets none of them.</p>
<p>HEAD ignores ${code("Range")}; otherwise it gets the same status and fields as a GET. On the old
paths:</p>
<ul>
${[...signs, lookup].map((sign) => `<li>${sign}</li>`).join("\n")}
</ul>
<p>Request this page with ${
    code("Accept: application/json")
  } to get the paths and dates as JSON.</p>
</section>`;
}

/**
 * Renders each problem type that can occur, and the removal, to which earlier errors link. Its id
 * is the fragment of its URI.
 */
function errors(types: NoticePageOptions["types"], { endpoints }: Notice): string {
  const left = endpoints.filter(({ phase }) => phase !== "removed");
  const rows = Object.entries(types).flatMap(([name, { status, title, meaning }]) => {
    const statuses = name === "brownout"
      ? [...new Set(left.flatMap(brownoutStatusesOf))]
      : [status];
    if (statuses.length === 0) return [];
    return `<div id="${escape(name)}"><dt><a href="#${escape(name)}">${escape(title)}</a> ` +
      `${statuses.map((each) => code(String(each))).join(" or ")}</dt>\n` +
      `<dd>${escape(meaning)}</dd></div>`;
  });
  const members = endpoints.length === 0
    ? ""
    : ` On the old paths, ${code("successor")} links to the item's
replacement, unless the response says that the item was unpublished or never published, or the token malformed;
${code("documentation")} links to an explanation of the retirement.`;
  const otherKind = left.length === 0
    ? ""
    : ` While it works, an old path for one kind answers ${code("404")} for an item of the other
kind, which its replacement serves.`;
  return `<section>
<h2>Errors</h2>
<p>Errors are problem details (${rfc(9457)}), whose ${code("type")} links to an entry in this list.
A HEAD gets the status and the fields, but no content, and so no ${
    code("type")
  }.${members}${otherKind}</p>
<dl class="errors">
${rows.join("\n")}
</dl>
</section>`;
}

/** Returns the statuses of brownouts, or the one that a brownout would have. */
function brownoutStatusesOf(
  { brownouts, brownoutStatus }: Notice["endpoints"][number],
) {
  const statuses = brownouts.map(({ status }) => status);
  return statuses.length > 0 ? statuses : [brownoutStatus];
}

/** Renders a link to an RFC. */
function rfc(number: number): string {
  return `<a href="https://www.rfc-editor.org/rfc/rfc${number}">RFC&nbsp;${number}</a>`;
}

async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `sha256-${new Uint8Array(digest).toBase64()}`;
}
