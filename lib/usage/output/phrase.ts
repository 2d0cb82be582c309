/**
 * What a report says, in parts: text, dates, paths and code. A terminal prints them as they are, and
 * pages format them for people. So nothing that a client chose, such as a name, can be taken for a
 * date, a path or code.
 */

import { formatInstant } from "../../http/timestamp.ts";
import { code as codeHtml, escape, time } from "../../pages/html.ts";
import { dateText } from "../../pages/plain_text.ts";

/** A part of a phrase. A string is text, whatever it looks like. */
type Part = string | { readonly kind: "date" | "path" | "code"; readonly text: string };

/** A sentence, or a piece of one. */
export type Phrase = readonly Part[];

/** A line of a list, and the lines below it. */
export interface Item {
  readonly line: Phrase;
  readonly below?: readonly Phrase[];
}

/** Returns a phrase of texts, parts and other phrases. */
export function phrase(...pieces: readonly (Part | Phrase)[]): Phrase {
  return pieces.flat();
}

/** Returns a day, or an instant, of ISO 8601. */
export function date(text: string): Part {
  return { kind: "date", text };
}

/** @param milliseconds Since the epoch. */
export function instant(milliseconds: number): Part {
  return date(formatInstant(milliseconds));
}

/** Returns the name of a route, which is its path on most servers. */
export function path(route: string): Part {
  return { kind: "path", text: route };
}

/** Returns code, such as an option or the name of a field. */
export function code(text: string): Part {
  return { kind: "code", text };
}

/** Joins phrases with a text between them. */
export function joined(phrases: readonly Phrase[], separator: string): Phrase {
  return phrases.flatMap((each, index) => index === 0 ? each : [separator, ...each]);
}

/** Lists phrases in a sentence, e.g. "a, b, and c". */
export function enumerated(phrases: readonly Phrase[]): Phrase {
  const indices = phrases.map((_, index) => String(index));
  return new Intl.ListFormat("en").formatToParts(indices) // made here, because the first takes 25 ms
    .flatMap(({ type, value }) => type === "element" ? phrases[Number(value)] as Phrase : [value]);
}

/** Returns a phrase that begins a sentence. */
export function capitalized([first = "", ...others]: Phrase): Phrase {
  const isText = typeof first === "string";
  return [isText ? first.charAt(0).toUpperCase() + first.slice(1) : first, ...others];
}

/** Formats a phrase for a terminal. */
export function textOf(phrase: Phrase): string {
  return phrase.map((part) => {
    if (typeof part === "string") return part;
    return part.kind === "code" ? `\`${part.text}\`` : part.text;
  }).join("");
}

/** Formats a phrase as plain text for people, with dates as pages write them. */
export function titleOf(phrase: Phrase): string {
  return phrase.map((part) => {
    if (typeof part === "string") return part;
    return part.kind === "date" ? dateText(part.text) : part.text;
  }).join("");
}

export function htmlOf(phrase: Phrase): string {
  return phrase.map((part) => {
    if (typeof part === "string") return escape(part);
    switch (part.kind) {
      case "date":
        return time(part.text);
      case "path":
        return escape(pathText(part.text));
      case "code":
        return codeHtml(part.text);
    }
  }).join("");
}

/** Formats the path of a route for people, e.g. "/songs/{id}" for `/songs/:id`. */
export function pathText(route: string): string {
  return route.startsWith("/") ? route.replaceAll(/\/:(\w+)/g, "/{$1}") : route;
}

export function list(phrases: readonly Phrase[]): string {
  return listOfItems(phrases.map((line) => ({ line })));
}

export function listOfItems(items: readonly Item[]): string {
  if (items.length === 0) return "";
  const lines = items.map(({ line, below = [] }) => `<li>${htmlOf(line)}${list(below)}</li>`);
  return `<ul>\n${lines.join("\n")}\n</ul>`;
}

export function details(summary: string, html: string): string {
  return `<details><summary>${summary}</summary>\n${html}\n</details>`;
}
