/** Text as HTML: escaped, as code, or as a date. */

import { printableLines } from "../input/printable.ts";
import { dateText } from "./plain_text.ts";
import { PAGE_STYLE } from "./style.ts";

/**
 * Escapes a text for HTML, within the quotes of an attribute, too. Shows characters that would not be
 * seen or printed.
 */
export function escape(text: string): string {
  return printableLines(text).replaceAll(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

export function code(text: string): string {
  return `<code>${escape(text)}</code>`;
}

/** Renders a date. The style keeps it on one line, and the notice's script adds the local time. */
export function time(instant: string): string {
  return `<time datetime="${escape(instant)}">${dateText(instant)}</time>`;
}

/** Renders a page, with the style that all have. */
export function htmlPage(title: string, head: string, main: string): string {
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}</title>
<style>${PAGE_STYLE}</style>
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
