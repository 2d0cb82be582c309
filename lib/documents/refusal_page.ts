/**
 * A brownout or a removal as a page, for people who opened a link to a deprecated path.
 */

import { accepts } from "@std/http/negotiation";
import { escape } from "@std/html/entities";
import { type Outcome, textOutcome } from "../http/outcome.ts";
import { formatInstant, type Policy } from "../lifecycle/policy.ts";
import type { Refusal } from "../lifecycle/refusal.ts";
import { code, time } from "./notice_html.ts";
import { hashOf, ICON } from "./notice_page.ts";
import { NOTICE_STYLE } from "./notice_style.ts";

/** What the page says besides the refusal. */
export interface RefusalPageOptions {
  readonly policy: Policy;
  /** The path of the item's replacement, if it is known. */
  readonly successor: string | undefined;
}

/** Allows the page's own style and icon, and no script. */
const CONTENT_SECURITY_POLICY = `default-src 'none'; style-src '${hashOf(NOTICE_STYLE)}'; ` +
  "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The fields that describe the problem's content instead. */
const REPLACED = new Set(["Content-Type", "Content-Length", "X-Content-Type-Options"]);

/** Returns a refusal as a page; as it is for a client that prefers JSON. */
export function presentRefusal(
  refused: Refusal,
  headers: Headers,
  options: RefusalPageOptions,
): Outcome {
  if (refused.body === undefined) return refused; // a redirect
  const best = accepts({ headers }, "application/problem+json", "application/json", "text/html");
  if (best !== "text/html") return refused;
  const page = textOutcome(refused.status, {
    type: "text/html; charset=utf-8",
    text: refusalPage(refused, options),
    fields: [
      ...refused.fields.filter(([name]) => !REPLACED.has(name)),
      ["Content-Language", "en"],
      ["Content-Security-Policy", CONTENT_SECURITY_POLICY],
    ],
  });
  return { ...page, freshUntil: refused.freshUntil };
}

function refusalPage({ freshUntil }: Refusal, { policy, successor }: RefusalPageOptions): string {
  const { sunsetAt = 0, documentation } = policy;
  const isBrownout = freshUntil !== Infinity;
  const [title, state] = isBrownout
    ? [
      "This link is switched off for now",
      `It works again from ${time(formatInstant(freshUntil))}, ` +
      `and is removed for good at ${time(formatInstant(sunsetAt))}.`,
    ]
    : ["This link was removed", `It worked until ${time(formatInstant(sunsetAt))}.`];
  const replacement = successor === undefined
    ? ""
    : `<p>The same item is here: <a href="${escape(successor)}">${code(successor)}</a></p>\n`;
  const explanation = documentation === undefined
    ? ""
    : `<p><a href="${escape(documentation)}">Why, and what to do about it</a></p>\n`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title}</title>
<link rel="icon" href="${ICON}">
<style>${NOTICE_STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p class="lead">${state}</p>
${replacement}${explanation}</main>
</body>
</html>
`;
}
