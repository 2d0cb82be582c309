/** The retirement notice for people: a self-contained page that is complete without its script. */

import type { ProblemType } from "../http/problem.ts";
import type { Notice } from "../lifecycle/notice.ts";
import { code, escape } from "../pages/html.ts";
import { type NoticeDocument, noticeDocument, rfc } from "../pages/notice_document.ts";
import { changes, checkInCi, contactLink, dates } from "../pages/notice_parts.ts";
import { state } from "../pages/notice_state.ts";

/** The facts on the page besides the notice. */
interface NoticePageOptions {
  /** The paths at which items stay, and what each serves. */
  readonly items: readonly { readonly path: string; readonly serves: string }[];
  /** The problem types to explain, by id. */
  readonly types: Readonly<Record<string, ProblemType>>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export async function noticePage(
  notice: Notice,
  { items, types, now }: NoticePageOptions,
): Promise<NoticeDocument> {
  const { endpoints, contact } = notice;
  return await noticeDocument(
    notice,
    `${endpoints.length === 0 ? contactLink(contact) : retirement(notice, now)}
${whereItemsAre(items)}
${errors(types, notice)}`,
  );
}

/** Says where items are, for clients that use a path which is no longer listed, too. */
function whereItemsAre(items: NoticePageOptions["items"]): string {
  const rows = items.map(({ path, serves }) => `<li>${code(path)}: ${escape(serves)}</li>`);
  return `<section>
<h2>Where items are</h2>
<ul>
${rows.join("\n")}
</ul>
<p>Other paths to items, if there were any, have been deleted. A deleted path answers ${
    code("404")
  },
without ${code("Deprecation")}. That says nothing about the item: in such a URL, change the path and
keep the token. The content and its ${
    code("ETag")
  } are the same. The OpenAPI description of all paths is
at <a href="/openapi.json">/openapi.json</a>.</p>
</section>`;
}

const REDIRECTED =
  "Requests with a valid token are redirected to the replacement with 308, others get 410.";

/** Renders the state, what to do, the dates, and what programs get from the old paths. */
function retirement(notice: Notice, now: number): string {
  const { endpoints } = notice;
  const isRemoved = endpoints.every(({ phase }) => phase === "removed");
  const isRedirected = endpoints.some(({ afterSunset }) => afterSunset === "redirect");
  const test = isRemoved && !isRedirected
    ? ""
    : `<p>To check that a client has moved, block the old paths in a test, with
a mock or a debugging proxy: the client should work as before.</p>
${checkInCi()}`;
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
  return `${state(notice, REDIRECTED)}
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
