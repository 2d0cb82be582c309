/** The retirement notice for people: one self-contained page, complete without its script. */

import { formatHttpDate } from "../http/http_date.ts";
import type { ProblemType } from "../http/problem.ts";
import { escape } from "@std/html/entities";
import { type Notice, noticesOf, type RetiredEndpoint } from "./notice.ts";
import { block, code, duration, originIn, rfc, time } from "./notice_html.ts";
import { banner, facts } from "./notice_state.ts";
import { NOTICE_STYLE } from "./notice_style.ts";

/**
 * Adds the reader's local time to every date, unless that is UTC, and puts the origin, which a
 * server behind a proxy does not know, into the commands.
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

const META = `<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">`;

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
  `style-src '${await hashOf(NOTICE_STYLE)}'`,
  `script-src '${await hashOf(PAGE_SCRIPT)}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Sample code for a client to detect a deprecation. A test runs it. */
const CLIENT = `const { headers } = await fetch(url, { method: "HEAD" });
const deprecation = headers.get("Deprecation"); // like @1798761600
if (deprecation !== null) {
  const since = new Date(Number(deprecation.slice(1)) * 1000);
  const sunset = headers.get("Sunset") ?? "not set yet";
  const [, successor] = /<([^>]*)>; *rel="successor-version"/
    .exec(headers.get("Link") ?? "") ?? [];
  console.warn(\`\${url} is deprecated\`, { since, sunset, successor });
}`;

/**
 * Renders the page.
 *
 * @param types The problem types to explain, by id.
 * @param publicUrl The origin for the commands; if left out, the page fills in its own.
 */
export function noticePage(
  notice: Notice,
  types: Readonly<Record<string, ProblemType>>,
  publicUrl?: string,
): { html: string; contentSecurityPolicy: string } {
  const { endpoints } = notice;
  const notices = noticesOf(notice);
  const isRemoved = notices.every(({ phase }) => phase === "removed");
  const areSeveral = notices.length > 1;
  const heading = (each: Notice) => areSeveral ? `<h2>${pathsOf(each)}</h2>\n` : "";
  const of = (each: Notice) => areSeveral ? ` of ${pathsOf(each)}` : "";
  const title = listOf(endpoints.map(({ path }) => path)) || "the deprecated paths";
  const paths = pathsOf(notice) || "The deprecated paths";
  const successors = listOf([...new Set(endpoints.map(({ successor }) => code(successor)))]);
  const html = `<!DOCTYPE html>
<html lang="en">
<head>
${META}
<title>Retirement of ${escape(title)}</title>
<link rel="icon" href="${ICON}">
<style>${NOTICE_STYLE}</style>
</head>
<body>
<main>
<header>
<h1>${paths} ${isRemoved ? "were removed" : "are going away"}</h1>
${
    endpoints.length === 0 // their routes were deleted
      ? `<p class="lead">The remaining paths are described at <a href="/openapi.json">/openapi.json</a>.</p>
</header>`
      : `<p class="lead">Use ${successors} instead. The token stays the same, and so does everything else.</p>
</header>
${notices.map((each) => `${heading(each)}${banner(each)}\n${facts(each)}`).join("\n")}
${whatToDo(endpoints, publicUrl)}
${notices.map((each) => `${calendar(each, of(each))}\n${afterwards(each, of(each))}`).join("\n")}
${forPrograms(notices, publicUrl)}`
  }
${errors(types, notice)}
</main>
<script>${PAGE_SCRIPT}</script>
</body>
</html>
`;
  return { html, contentSecurityPolicy: CONTENT_SECURITY_POLICY };
}

function pathsOf({ endpoints }: Notice): string {
  return listOf(endpoints.map(({ path }) => code(path)));
}

function whatToDo(endpoints: RetiredEndpoint[], publicUrl: string | undefined): string {
  const changes = endpoints.map(({ path, successor }) =>
    `<li>${code(path)} becomes ${code(successor)}</li>`
  );
  const [{ path, successor }] = endpoints as [RetiredEndpoint];
  const curl = (path: string) => `curl -I ${originIn(publicUrl)}${escape(path)}`;
  return `<section>
<h2>What to do</h2>
<p>Change only the path:</p>
<ul>
${changes.join("\n")}
</ul>
<h3>Before</h3>
${block("Before, with curl", curl(path))}
<h3>After</h3>
${block("After, with curl", curl(successor))}
<p>${code("{token}")} stands for the token of an item${
    publicUrl === undefined ? ORIGIN_NOTE : ""
  }.</p>
<h3>Detect the deprecation in your client</h3>
<p>Every response from the old paths says when they will be removed, and what replaces the item:</p>
${block("A client in JavaScript", escape(CLIENT))}
</section>`;
}

const ORIGIN_NOTE = `<noscript>, and ${code("{origin}")} for the scheme and host of this
page</noscript>`;

/** The states of a brownout, by class. */
const MARKS = { over: "over", on: "on now", next: "next", later: "upcoming" };

/** @param of The endpoints for the heading, if others have other dates. */
function calendar(notice: Notice, of: string): string {
  const { brownouts, brownoutStatus, phase } = notice;
  if (brownouts.length === 0) return "";
  const states = brownouts.map((brownout) => stateOf(brownout, notice));
  const next = states.indexOf("later");
  if (next >= 0) states[next] = "next";
  const rows = brownouts.map(({ start, end }, index) => {
    const state = states[index] as keyof typeof MARKS;
    return `<li class="${state}">${time(start)} to ${time(end)}, ` +
      `${duration(start, end)} (${MARKS[state]})</li>`;
  });
  const [are, answer] = phase === "removed" ? ["were", "answered"] : ["are", "answer"];
  return `<section>
<h2>Brownouts${of}</h2>
<p>Before the removal, the old paths ${are} temporarily disabled as a warning. During a brownout they ${answer}
<code>${brownoutStatus}</code>, with <code>Retry-After</code> set to its end.</p>
<ol>
${rows.join("\n")}
</ol>
</section>`;
}

/** Derives a brownout's state from the current phase: past, current or upcoming. */
function stateOf(
  { start, end }: Notice["brownouts"][number],
  { phase, phaseEndsAt }: Notice,
): keyof typeof MARKS {
  if (phaseEndsAt === null) return "over";
  if (phase === "brownout" && end === phaseEndsAt) return "on";
  return Date.parse(start) >= Date.parse(phaseEndsAt) ? "later" : "over";
}

function afterwards({ afterSunset, sunsetAt, phase }: Notice, of: string): string {
  const text = afterSunset === "redirect"
    ? "<code>308</code>, a redirect to the same item at its new path. Clients that follow " +
      "redirects keep working, at the cost of an extra request each time."
    : "<code>410</code>. Clients that still use them get no media.";
  return `<section>
<h2>${sunsetAt === null ? "Once they are removed" : "After the removal"}${of}</h2>
<p>The old paths ${
    phase === "removed" ? "now answer" : "will answer"
  } ${text} Eventually they will answer <code>404</code>, like any unknown path.</p>
</section>`;
}

function forPrograms(
  notices: readonly [Notice, ...Notice[]],
  publicUrl: string | undefined,
): string {
  const [{ deprecatedAt, sunsetAt }, ...others] = notices;
  const valueOf = (value: string) => others.length === 0 ? `: ${value}` : ""; // else they differ
  const deprecation = `Deprecation${valueOf(`@${Date.parse(deprecatedAt) / 1000}`)}`;
  const sunset = `Sunset${sunsetAt ? valueOf(formatHttpDate(Date.parse(sunsetAt))) : ""}`;
  return `<section>
<h2>For programs</h2>
<p>Every response from the old paths, errors included, has these header fields:</p>
<dl class="fields">
<dt>${code(deprecation)}</dt>
<dd>When the deprecation starts, in seconds since 1970 (${rfc(9745)}).</dd>
<dt>${code(sunset)}</dt>
<dd>When the path is removed${sunsetAt === null ? ", once a date is set" : ""}
(${rfc(8594)}).</dd>
<dt>${code("Link")}</dt>
<dd>The item's replacement, if any, with ${code('rel="successor-version"')}; this notice, with
${code('rel="deprecation"')} and, once a date is set, ${code('rel="sunset"')}
(${rfc(8288)}).</dd>
</dl>
<h3>This notice as JSON</h3>
${
    block(
      "This notice as JSON, with curl",
      `curl -H "Accept: application/json" ${originIn(publicUrl)}/deprecation`,
    )
  }
<p>The whole API is described at <a href="/openapi.json">/openapi.json</a>.</p>
</section>`;
}

/** Renders each problem type, under the id that its URI links to. */
function errors(
  types: Readonly<Record<string, ProblemType>>,
  { brownoutStatus }: Notice,
): string {
  const rows = Object.entries(types).map(([name, { status, title, meaning }]) =>
    `<div id="${escape(name)}"><dt><a href="#${escape(name)}">${escape(title)}</a> ` +
    `${code(String(name === "brownout" ? brownoutStatus : status))}</dt>\n` +
    `<dd>${escape(meaning)}</dd></div>`
  );
  return `<section>
<h2>Errors</h2>
<p>Errors on GET are problem details (${rfc(9457)}), whose ${code("type")} links to an entry in this
list. On the old paths, ${code("successor")} links to the item's replacement, and
${code("documentation")} to an explanation of the retirement.</p>
<dl class="errors">
${rows.join("\n")}
</dl>
</section>`;
}

function listOf(words: readonly string[]): string {
  return new Intl.ListFormat("en").format(words); // the first one would take 25 ms of the start
}

async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return `sha256-${new Uint8Array(digest).toBase64()}`;
}
