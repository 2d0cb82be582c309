/**
 * The small parts that the notice's page is written with.
 */

import { escape } from "@std/html/entities";

/** A link to an RFC. */
export function rfc(number: number): string {
  return `<a href="https://www.rfc-editor.org/rfc/rfc${number}">RFC ${number}</a>`;
}

/** Code in a line of text. */
export function code(text: string): string {
  return `<code>${escape(text)}</code>`;
}

/** The origin of the server, for a script to fill in. */
export const ORIGIN = `<span class="origin">{origin}</span>`;

/** Code that scrolls by itself, and by keyboard too. */
export function block(label: string, html: string): string {
  return `<pre tabindex="0" role="region" aria-label="${label}"><code>${html}</code></pre>`;
}

/** A date in UTC, for a script to add the local one to. */
export function time(instant: string): string {
  const text = instant.replace("T", " ").replace(/(:00)?Z$/, " UTC");
  return `<time datetime="${escape(instant)}">${escape(text)}</time>`;
}

/** e.g. "1 d 8 h 30 min" */
export function duration(start: string, end: string): string {
  const seconds = (Date.parse(end) - Date.parse(start)) / 1000;
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  return parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`).join(" ");
}
