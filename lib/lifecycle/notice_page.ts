/**
 * The retirement notice for people: one page, read in one minute, that loads nothing else. It is
 * whole without a script; with one, it adds the reader's local time to every date.
 */

import { createHash } from "node:crypto";
import type { Notice, RetiredEndpoint } from "./notice.ts";
import { PAGE_SCRIPT, PAGE_STYLE } from "./notice_page_assets.ts";

/** A page, and what it may load. */
export interface NoticePage {
  readonly html: string;
  /** The value of the Content-Security-Policy field: its own style and script, and nothing else. */
  readonly contentSecurityPolicy: string;
}

/** The sources of the page's own style and script, by what they are. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `style-src '${hashOf(PAGE_STYLE)}'`,
  `script-src '${hashOf(PAGE_SCRIPT)}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** A token for the examples, which look better whole. */
const EXAMPLE_TOKEN = "0f8c2a4e-5b7d-4e19-9c3a-6d1f2b8e7a50";

/**
 * Writes the page.
 *
 * @param origin Where the server is, e.g. `https://media.example`, for the lines to try.
 */
export function noticePage(notice: Notice, origin: string): NoticePage {
  const { endpoints } = notice;
  const paths = endpoints.map(({ path }) => code(path)).join(" and ");
  const html = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Retirement of ${escape(endpoints.map(({ path }) => path).join(" and "))}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<main>
<header>
<h1>${paths} ${notice.phase === "removed" ? "were removed" : "are going away"}</h1>
<p class="lead">Use ${
    successors(endpoints)
  } instead. The token stays the same, and so does everything else.</p>
</header>
${banner(notice)}
${facts(notice)}
${whatToDo(endpoints, origin)}
${calendar(notice)}
${afterwards(notice)}
${forPrograms(origin)}
</main>
<script>${PAGE_SCRIPT}</script>
</body>
</html>
`;
  return { html, contentSecurityPolicy: CONTENT_SECURITY_POLICY };
}

function banner({ phase, phaseEndsAt, sunsetAt }: Notice): string {
  const until = phaseEndsAt === null ? "" : time(phaseEndsAt);
  const texts: Record<Notice["phase"], [title: string, text: string]> = {
    announced: ["Announced", `All works as ever. The deprecation begins ${until}.`],
    deprecated: [
      "Deprecated, and still working",
      phaseEndsAt === null
        ? "No date is set for the removal yet. Move now, while nothing is urgent."
        : phaseEndsAt === sunsetAt
        ? `All works until the removal, ${until}.`
        : `All works until the next brownout, ${until}.`,
    ],
    brownout: ["Off on trial", `Every request is answered with 410 until ${until}.`],
    removed: ["Removed", "Requests are not served here any more."],
  };
  const [title, text] = texts[phase];
  return `<section class="banner ${phase}" aria-label="The state right now">
<p class="state">Right now</p>
<p><strong>${title}.</strong> ${text}</p>
</section>`;
}

function facts({ deprecatedAt, sunsetAt, phase }: Notice): string {
  const removal = sunsetAt === null ? "no date is set yet" : time(sunsetAt);
  return `<dl class="facts">
<div><dt>Deprecated ${phase === "announced" ? "from" : "since"}</dt><dd>${
    time(deprecatedAt)
  }</dd></div>
<div><dt>${phase === "removed" ? "Removed" : "To be removed"}</dt><dd>${removal}</dd></div>
</dl>`;
}

function whatToDo(endpoints: RetiredEndpoint[], origin: string): string {
  const rows = endpoints.map(({ path, methods, successor }) =>
    `<tr><td>${code(path)}</td><td>${code(successor)}</td><td>${methods.join(", ")}</td></tr>`
  );
  const [first] = endpoints;
  const lines = first === undefined ? "" : `
<h3>Before</h3>
${block("Before", `curl -I ${origin}${example(first.path)}`)}
<h3>After</h3>
${block("After", `curl -I ${origin}${example(first.successor)}`)}`;
  return `<section>
<h2>What to do</h2>
<p>Change the path, and nothing else.</p>
<div class="scroll" tabindex="0" role="region" aria-label="What replaces what">
<table><thead><tr><th scope="col">Instead of</th><th scope="col">use</th><th scope="col">Methods</th></tr></thead>
<tbody>${rows.join("")}</tbody></table>
</div>${lines}
<h3>In a client</h3>
<p>Every answer names its replacement. Let your client notice by itself:</p>
${block("Client in JavaScript", CLIENT)}
</section>`;
}

const CLIENT = `const response = await fetch(url, { method: "HEAD" });
if (response.headers.has("Deprecation")) {
  console.warn(
    \`\${url} is deprecated\`,
    \`and ends \${response.headers.get("Sunset") ?? "some day"};\`,
    \`instead: \${response.headers.get("Link")}\`,
  );
}`;

function calendar({ brownouts, phase, phaseEndsAt }: Notice): string {
  if (brownouts.length === 0) return "";
  const rows = brownouts.map(({ start, end }) => {
    const state = stateOf(end, start, { phase, phaseEndsAt });
    return `<tr class="${state}"><td>${time(start)}</td><td>${time(end)}</td>` +
      `<td>${duration(start, end)}</td><td>${state}</td></tr>`;
  });
  return `<section>
<h2>Brownouts</h2>
<p>Ahead of the removal the old paths are switched off for a while, so that nobody is surprised by it.
They then answer <code>410</code>, with <code>Retry-After</code> saying when they are back.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Brownouts">
<table><thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col">For</th><th scope="col">State</th></tr></thead>
<tbody>${rows.join("")}</tbody></table>
</div>
</section>`;
}

/** Follows from the phase alone: what lies after its end is to come, and what lies before is over. */
function stateOf(
  end: string,
  start: string,
  { phase, phaseEndsAt }: Pick<Notice, "phase" | "phaseEndsAt">,
): "on" | "over" | "to come" {
  if (phaseEndsAt === null) return "over";
  if (phase === "brownout" && end === phaseEndsAt) return "on";
  return start >= phaseEndsAt ? "to come" : "over";
}

function afterwards({ afterSunset, sunsetAt }: Notice): string {
  if (sunsetAt === null) return "";
  const answer = afterSunset === "redirect"
    ? "<code>308</code> to the replacement of the very item asked for"
    : "<code>410</code>, for good";
  return `<section>
<h2>After the removal</h2>
<p>The old paths answer ${answer}.</p>
</section>`;
}

function forPrograms(origin: string): string {
  return `<section>
<h2>For programs</h2>
<p>Every answer of the old paths carries <code>Deprecation</code> (RFC 9745), <code>Sunset</code> once a date
is set (RFC 8594), and <code>Link</code> (RFC 8288) with the relations <code>successor-version</code>,
<code>deprecation</code> and <code>sunset</code>. This notice as JSON:</p>
${block("This notice as JSON", `curl -H "Accept: application/json" ${origin}/deprecation`)}
<p>The whole API is described at <a href="/openapi.json">/openapi.json</a>.</p>
</section>`;
}

function successors(endpoints: RetiredEndpoint[]): string {
  return [...new Set(endpoints.map(({ successor }) => code(successor)))].join(" and ");
}

function example(path: string): string {
  return path.replace("{token}", EXAMPLE_TOKEN);
}

function code(text: string): string {
  return `<code>${escape(text)}</code>`;
}

function block(label: string, text: string): string {
  return `<pre tabindex="0" role="region" aria-label="${label}"><code>${escape(text)}</code></pre>`;
}

/** A date in UTC, for a script to add the local one to. */
function time(instant: string): string {
  const text = instant.replace("T", " ").replace(/(:00)?Z$/, " UTC");
  return `<time datetime="${escape(instant)}">${escape(text)}</time>`;
}

/** e.g. "1 d 8 h 30 min" */
function duration(start: string, end: string): string {
  const seconds = (Date.parse(end) - Date.parse(start)) / 1000;
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  return parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`).join(" ");
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
