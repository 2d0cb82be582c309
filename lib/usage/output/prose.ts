/** The paths and sentences of a report as its pages show them: alone, in a list, or folded away. */

import { escape, time } from "../../pages/html.ts";

/** Matches a date of ISO 8601 in a sentence, but not within a name. */
export const DATE = /(?<![\w.-])\d{4}-\d\d-\d\d(?:T[\d:.]+Z)?(?!\.?[\w-])/g;

/** Renders a sentence, with dates, paths and code formatted for people. */
export function prose(text: string): string {
  // Between backticks is code, such as a command, in which a date has another form.
  return escape(text).split("`").map((part, index) =>
    index % 2 === 1
      ? `<code>${pathText(part)}</code>`
      : pathText(part).replaceAll(DATE, (date) => time(date))
  ).join("");
}

/** Formats the path of a route for people, e.g. "/songs/{id}" for `/songs/:id`. */
export function pathText(route: string): string {
  return route.replaceAll(/\/:(\w+)/g, "/{$1}");
}

export function list(lines: readonly string[]): string {
  if (lines.length === 0) return "";
  return `<ul>\n${lines.map((line) => `<li>${prose(line)}</li>`).join("\n")}\n</ul>`;
}

export function details(summary: string, html: string): string {
  return `<details><summary>${summary}</summary>\n${html}\n</details>`;
}
