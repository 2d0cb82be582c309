/**
 * The retirement notice for people: one page, read in one minute, that loads nothing else. It is
 * whole without a script; with one, it adds the reader's local time to every date, and the origin
 * to the commands.
 */

import { createHash } from "node:crypto";
import { formatHttpDate } from "../http/http_date.ts";
import type { ProblemType } from "../http/problem.ts";
import { escape } from "@std/html/entities";
import type { Notice, RetiredEndpoint } from "./notice.ts";
import { errors } from "./notice_errors.ts";
import { block, code, duration, ORIGIN, rfc, time } from "./notice_html.ts";
import { banner, facts } from "./notice_state.ts";
import { NOTICE_STYLE } from "./notice_style.ts";

/** A page, and what it may load. */
export interface NoticePage {
  readonly html: string;
  /** The value of the Content-Security-Policy field: its own style, script and icon. */
  readonly contentSecurityPolicy: string;
}

/**
 * Adds the reader's local time to every date, unless it is the same as UTC on that date; and the
 * origin, which the reader's address bar knows, and a server behind a proxy does not.
 */
const PAGE_SCRIPT = `
if (location.origin !== "null") {
  for (const origin of document.querySelectorAll(".origin")) origin.textContent = location.origin;
}
const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
for (const time of document.querySelectorAll("time")) {
  const date = new Date(time.dateTime);
  if (date.getTimezoneOffset() === 0) continue;
  const local = document.createElement("span");
  local.className = "local";
  local.lang = format.resolvedOptions().locale;
  local.textContent = "(" + format.format(date) + " your time)";
  time.append(" ", local);
}
`;

/** A clock; browsers would ask for /favicon.ico otherwise. */
const ICON = `data:image/svg+xml,${
  encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="none" stroke="#b26a00" ` +
      `stroke-width="4" stroke-linecap="round" stroke-linejoin="round"><circle cx="16" cy="16" ` +
      `r="13"/><path d="M16 8v8l5 4"/></svg>`,
  )
}`;

/** The page's own style and script by their digests (CSP Level 3 §2.3.1), and its icon. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(NOTICE_STYLE)}'`,
  `script-src '${hashOf(PAGE_SCRIPT)}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** How a client learns of a retirement by itself. A test runs it. */
const CLIENT = `const { headers } = await fetch(url, { method: "HEAD" });
const deprecation = headers.get("Deprecation"); // like @1798761600
if (deprecation !== null) {
  const since = new Date(Number(deprecation.slice(1)) * 1000);
  const sunset = headers.get("Sunset") ?? "not set yet";
  const [, successor] = /<([^>]*)>; *rel="successor-version"/
    .exec(headers.get("Link") ?? "") ?? [];
  console.warn(\`\${url} is deprecated\`, { since, sunset, successor });
}`;

const list = new Intl.ListFormat("en");

/**
 * Writes the page.
 *
 * @param types The types of problem to explain, by the ids that they get.
 */
export function noticePage(
  notice: Notice,
  types: Readonly<Record<string, ProblemType>>,
): NoticePage {
  const { endpoints, phase } = notice;
  const title = list.format(endpoints.map(({ path }) => path));
  const paths = list.format(endpoints.map(({ path }) => code(path)));
  const successors = list.format([...new Set(endpoints.map(({ successor }) => code(successor)))]);
  const html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Retirement of ${escape(title)}</title>
<link rel="icon" href="${ICON}">
<style>${NOTICE_STYLE}</style>
</head>
<body>
<main>
<header>
<h1>${paths} ${phase === "removed" ? "were removed" : "are going away"}</h1>
<p class="lead">Use ${successors} instead. The token stays the same, and so does everything else.</p>
</header>
${banner(notice)}
${facts(notice)}
${whatToDo(endpoints)}
${calendar(notice)}
${afterwards(notice)}
${forPrograms(notice)}
${errors(types)}
</main>
<script>${PAGE_SCRIPT}</script>
</body>
</html>
`;
  return { html, contentSecurityPolicy: CONTENT_SECURITY_POLICY };
}

function whatToDo(endpoints: RetiredEndpoint[]): string {
  const rows = endpoints.map(({ path, successor }) =>
    `<tr><th scope="row">${code(path)}</th><td>${code(successor)}</td></tr>`
  );
  const [first] = endpoints;
  return `<section>
<h2>What to do</h2>
<p>Change the path, and nothing else.</p>
<div class="scroll" tabindex="0" role="region" aria-label="What replaces what">
<table>
<thead><tr><th scope="col">Instead of</th><th scope="col">Use</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>
</div>
${first === undefined ? "" : tryIt(first)}
<h3>Let your client notice by itself</h3>
<p>Every answer of the old paths says that they go, when, and what replaces the very item:</p>
${block("A client in JavaScript", escape(CLIENT))}
</section>`;
}

/** One endpoint by example: on the command line, and in a client's code. */
function tryIt({ path, successor }: RetiredEndpoint): string {
  const curl = (path: string) => `curl -I ${ORIGIN}${escape(path)}`;
  const line = (path: string) => escape(`fetch(\`${path.replace("{token}", "${token}")}\`)`);
  return `<h3>Before</h3>
${block("Before, with curl", curl(path))}
<h3>After</h3>
${block("After, with curl", curl(successor))}
<p>${code("{token}")} stands for the token of an item<noscript>, and ${code("{origin}")} for the
scheme and host of this page</noscript>.</p>
<h3>In your code</h3>
${block("The line to change", `<del>- ${line(path)}</del><ins>+ ${line(successor)}</ins>`)}`;
}

function calendar(notice: Notice): string {
  const { brownouts, phase } = notice;
  if (brownouts.length === 0) return "";
  const states = brownouts.map((brownout) => stateOf(brownout, notice));
  const next = states.indexOf("to come");
  const rows = brownouts.map(({ start, end }, index) => {
    const state = states[index];
    const mark = state === "on"
      ? `<span class="mark on">on now</span>`
      : index === next
      ? `<span class="mark next">next</span>`
      : state;
    return `<tr class="${state}"><th scope="row">${time(start)}</th><td>${time(end)}</td>` +
      `<td>${duration(start, end)}</td><td>${mark}</td></tr>`;
  });
  const [are, answer] = phase === "removed" ? ["were", "answered"] : ["are", "answer"];
  return `<section>
<h2>Brownouts</h2>
<p>Ahead of the removal the old paths ${are} switched off for a while, as a warning. They then ${answer}
<code>410</code>, with <code>Retry-After</code> for the end of the brownout.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Brownouts">
<table class="calendar">
<thead><tr><th scope="col">Start</th><th scope="col">End</th><th scope="col">Duration</th><th scope="col">State</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>
</div>
</section>`;
}

/** Follows from the phase alone: what lies after its end is to come, and what lies before is over. */
function stateOf(
  { start, end }: Notice["brownouts"][number],
  { phase, phaseEndsAt }: Notice,
): "on" | "over" | "to come" {
  if (phaseEndsAt === null) return "over";
  if (phase === "brownout" && end === phaseEndsAt) return "on";
  return Date.parse(start) >= Date.parse(phaseEndsAt) ? "to come" : "over";
}

function afterwards({ afterSunset, sunsetAt, phase }: Notice): string {
  const text = afterSunset === "redirect"
    ? "<code>308</code> and the place of the same item under its new path. A client that follows " +
      "redirects goes on working, at the cost of one more request each time."
    : "<code>410</code>, for good. A client that still asks there gets no media any more.";
  return `<section>
<h2>${sunsetAt === null ? "Once they are removed" : "After the removal"}</h2>
<p>The old paths ${phase === "removed" ? "now answer" : "will answer"} ${text}</p>
</section>`;
}

function forPrograms({ deprecatedAt, sunsetAt }: Notice): string {
  const deprecation = `Deprecation: @${Date.parse(deprecatedAt) / 1000}`;
  const sunset = sunsetAt === null ? "Sunset" : `Sunset: ${formatHttpDate(Date.parse(sunsetAt))}`;
  return `<section>
<h2>For programs</h2>
<p>Every answer of the old paths, errors included, carries these fields:</p>
<dl class="fields">
<dt>${code(deprecation)}</dt>
<dd>From when on it is deprecated, in seconds since 1970 (${rfc(9745)}).</dd>
<dt>${code(sunset)}</dt>
<dd>${
    sunsetAt === null ? "When the path is removed, once a date is set" : "When the path is removed"
  }
(${rfc(8594)}).</dd>
<dt>${code("Link")}</dt>
<dd>What replaces this very item, if anything does, with ${code('rel="successor-version"')}; where
this notice is, with ${code('rel="deprecation"')} and, once a date is set, ${code('rel="sunset"')}
(${rfc(8288)}).</dd>
</dl>
<h3>This notice as JSON</h3>
${
    block(
      "This notice as JSON, with curl",
      `curl -H "Accept: application/json" ${ORIGIN}/deprecation`,
    )
  }
<p>The whole API is described at <a href="/openapi.json">/openapi.json</a>.</p>
</section>`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
