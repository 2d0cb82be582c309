/**
 * The retirement notice for people: one page, read in one minute, that loads nothing else. It is
 * whole without a script; with one, it adds the reader's local time to every date.
 */

import { createHash } from "node:crypto";
import { formatHttpDate } from "../http/http_date.ts";
import { escape } from "../html.ts";
import type { Notice, RetiredEndpoint } from "./notice.ts";
import { block, code, duration, rfc, time } from "./notice_html.ts";
import { PAGE_STYLE } from "./notice_style.ts";

/** A page, and what it may load. */
export interface NoticePage {
  readonly html: string;
  /** The value of the Content-Security-Policy field: its own style and script, and nothing else. */
  readonly contentSecurityPolicy: string;
}

/** Adds the reader's local time to every date, unless it is the same as UTC on that date. */
const PAGE_SCRIPT = `
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

/** The page's own style and script by their digests (CSP Level 3 §2.3.1), and nothing else. */
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
 * @param origin Where the server is, e.g. `https://media.example`, for the lines to try.
 */
export function noticePage(notice: Notice, origin: string): NoticePage {
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
<style>${PAGE_STYLE}</style>
</head>
<body>
<main>
<header>
<h1>${paths} ${phase === "removed" ? "were removed" : "are going away"}</h1>
<p class="lead">Use ${successors} instead. The token stays the same, and so does everything else.</p>
</header>
${banner(notice)}
${facts(notice)}
${whatToDo(endpoints, origin)}
${calendar(notice)}
${afterwards(notice)}
${forPrograms(notice, origin)}
</main>
<script>${PAGE_SCRIPT}</script>
</body>
</html>
`;
  return { html, contentSecurityPolicy: CONTENT_SECURITY_POLICY };
}

function banner(notice: Notice): string {
  const { phase } = notice;
  const [title, text] = stateNow(notice);
  return `<section class="banner ${phase}" aria-label="The state right now">
<p class="state">Right now</p>
<p><strong>${title}.</strong> ${text}</p>
</section>`;
}

function stateNow(notice: Notice): [title: string, text: string] {
  const { phase, phaseEndsAt, sunsetAt, afterSunset } = notice;
  const until = phaseEndsAt === null ? "" : time(phaseEndsAt);
  switch (phase) {
    case "announced":
      return ["Announced", `Everything works as ever. The deprecation begins ${until}.`];
    case "deprecated":
      return [
        "Deprecated, and still working",
        phaseEndsAt === null
          ? "No date is set for the removal yet. Move now, while nothing is urgent."
          : `Everything works until the ${
            phaseEndsAt === sunsetAt ? "removal" : "next brownout"
          }, ${until}.`,
      ];
    case "brownout":
      return [
        "Brownout: off on trial",
        `Requests for media are answered with 410 until ${until}. ${afterBrownout(notice)}`,
      ];
    case "removed":
      return [
        "Removed",
        afterSunset === "redirect"
          ? "Requests are redirected to the replacement, with 308."
          : "Requests are answered with 410, for good.",
      ];
  }
}

function afterBrownout({ phaseEndsAt, sunsetAt, brownouts }: Notice): string {
  if (phaseEndsAt === sunsetAt) return "Then comes the removal.";
  return brownouts.some(({ start }) => start === phaseEndsAt)
    ? "Then comes the next brownout."
    : "Then everything works again.";
}

function facts({ deprecatedAt, sunsetAt, phase }: Notice): string {
  return `<dl class="facts">
<div><dt>Deprecated ${phase === "announced" ? "from" : "since"}</dt>
<dd>${time(deprecatedAt)}</dd></div>
<div class="removal"><dt>${phase === "removed" ? "Removed" : "To be removed"}</dt>
<dd>${sunsetAt === null ? "No date set yet" : time(sunsetAt)}</dd></div>
</dl>`;
}

function whatToDo(endpoints: RetiredEndpoint[], origin: string): string {
  const rows = endpoints.map(({ path, methods, successor }) =>
    `<tr><th scope="row">${code(path)}</th><td>${code(successor)}</td>` +
    `<td>${escape(methods.join(", "))}</td></tr>`
  );
  const [first] = endpoints;
  return `<section>
<h2>What to do</h2>
<p>Change the path, and nothing else.</p>
<div class="scroll" tabindex="0" role="region" aria-label="What replaces what">
<table>
<thead><tr><th scope="col">Instead of</th><th scope="col">Use</th><th scope="col">Methods</th></tr></thead>
<tbody>
${rows.join("\n")}
</tbody>
</table>
</div>
${first === undefined ? "" : tryIt(first, origin)}
<h3>Let your client notice by itself</h3>
<p>Every answer of the old paths says that they go, when, and what replaces the very item:</p>
${block("A client in JavaScript", escape(CLIENT))}
</section>`;
}

/** One endpoint by example: on the command line, and in a client's code. */
function tryIt({ path, successor }: RetiredEndpoint, origin: string): string {
  const curl = (path: string) =>
    escape(`curl -I ${origin}${path.replace("{token}", EXAMPLE_TOKEN)}`);
  const line = (path: string) => escape(`fetch(\`${path.replace("{token}", "${token}")}\`)`);
  return `<h3>Before</h3>
${block("Before, with curl", curl(path))}
<h3>After</h3>
${block("After, with curl", curl(successor))}
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

function forPrograms({ deprecatedAt, sunsetAt }: Notice, origin: string): string {
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
<dd>What replaces this very item, ${code('rel="successor-version"')}, and where this notice is,
${code('rel="deprecation"')} and, once a date is set, ${code('rel="sunset"')} (${rfc(8288)}).</dd>
</dl>
<h3>This notice as JSON</h3>
${
    block(
      "This notice as JSON, with curl",
      escape(`curl -H "Accept: application/json" ${origin}/deprecation`),
    )
  }
<p>The whole API is described at <a href="/openapi.json">/openapi.json</a>.</p>
</section>`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
