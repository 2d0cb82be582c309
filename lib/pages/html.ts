/** HTML fragments for pages. */

import { NOTICE_STYLE } from "./style.ts";

/** Escapes a text for HTML, within the quotes of an attribute, too. */
export function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

/** Renders a page with the style of the notice. */
export function htmlPage(title: string, head: string, main: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}</title>
<style>${NOTICE_STYLE}</style>
${head}
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`;
}

export function rfc(number: number): string {
  return `<a href="https://www.rfc-editor.org/rfc/rfc${number}">RFC&nbsp;${number}</a>`;
}

/** Renders a link to the operator's contact; empty without one. */
export function contactText(contact: string | null | undefined): string {
  if (!contact) return "";
  const { protocol, pathname } = new URL(contact);
  const text = protocol === "mailto:" ? pathname : contact;
  return `<p>Contact the operator: <a href="${escape(contact)}">${escape(text)}</a></p>`;
}

/** Formats the path of a route for people, e.g. "/songs/{id}" for `/songs/:id`. */
export function pathText(route: string): string {
  return route.replaceAll(/\/:(\w+)/g, "/{$1}");
}

export function code(text: string): string {
  return `<code>${escape(text)}</code>`;
}

/** Formats a day or an instant for people, e.g. "22 Nov 2026" or "22 Nov 2026, 10:00 UTC". */
export function dateText(instant: string): string {
  const [, day, clock] = /, 0?(.*) (\d\d:\d\d)/.exec(new Date(instant).toUTCString()) ?? [];
  return instant.includes("T") ? `${day}, ${clock} UTC` : `${day}`;
}

/** Renders a date. The style keeps it on one line, and the notice's script adds the local time. */
export function time(instant: string): string {
  return `<time datetime="${escape(instant)}">${dateText(instant)}</time>`;
}

export function listOf(words: readonly string[]): string {
  return new Intl.ListFormat("en").format(words); // made here, because the first one takes 25 ms
}
