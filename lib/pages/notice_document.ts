/** The document around every notice: its headline, its script, and what its content may load. */

import { type Notice, noticesOf } from "../lifecycle/notice.ts";
import { htmlPage } from "./html.ts";
import { pathList } from "./notice_parts.ts";
import { listOf } from "./plain_text.ts";
import { PAGE_STYLE } from "./style.ts";

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
let contentSecurityPolicy: Promise<string> | undefined;

async function policyOfContent(): Promise<string> {
  return [
    "default-src 'none'",
    `style-src '${await hashOf(PAGE_STYLE)}'`,
    `script-src '${await hashOf(PAGE_SCRIPT)}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/** A page, and the field that says what it may load. */
export interface NoticeDocument {
  readonly html: string;
  readonly contentSecurityPolicy: string;
}

/** Renders a page with a notice. It is complete without its script. */
export async function noticeDocument(notice: Notice, main: string): Promise<NoticeDocument> {
  const { endpoints } = notice;
  const html = htmlPage(
    endpoints.length === 0 ? OVER : `Retirement of ${listOf(endpoints.map(({ path }) => path))}`,
    `<link rel="icon" href="${ICON}">`,
    `<h1>${headline(notice)}</h1>
${main}
<script>${PAGE_SCRIPT}</script>`,
  );
  return { html, contentSecurityPolicy: await (contentSecurityPolicy ??= policyOfContent()) };
}

/** The headline once the deprecated routes are deleted. */
const OVER = "The older paths were removed";

/** Says which paths are going away and which were removed. */
function headline(notice: Notice): string {
  // Pages are also made by Node 20, which has no Map.groupBy().
  const all = noticesOf(notice);
  const isFirstRemoved = all[0]?.phase === "removed";
  const groups = [isFirstRemoved, !isFirstRemoved].map((isRemoved) => ({
    isRemoved,
    notices: all.filter(({ phase }) => (phase === "removed") === isRemoved),
  })).filter(({ notices }) => notices.length > 0);
  const parts = groups.map(({ isRemoved, notices }) => {
    const [is, what] = isRemoved ? [["was", "were"], "removed"] : [["is", "are"], "going away"];
    return `${pathList(notices)} ${is[notices.length === 1 ? 0 : 1]} ${what}`;
  });
  return parts.join(", ") || OVER;
}

/** Renders a link to an RFC. */
export function rfc(number: number): string {
  return `<a href="https://www.rfc-editor.org/rfc/rfc${number}">RFC&nbsp;${number}</a>`;
}

async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}`;
}
