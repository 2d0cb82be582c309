/**
 * What a report says, in parts: text, dates, paths, code, and what a program calls its commands and
 * settings. A terminal prints them as they are, and pages format them for people. So nothing that a
 * client chose, such as a name, can be taken for a date, a path or code.
 */

import { formatInstant } from "../../http/timestamp.ts";
import { code as codeHtml, escape, time } from "../../pages/html.ts";
import { dateText } from "../../pages/plain_text.ts";

/** The names of a program's settings, and its instructions, for sentences. */
export interface ProgramNames {
  /** What probes routes, and what that takes, e.g. "set PUBLIC_URL, and the gate". */
  readonly howToProbe: string;
  /** The instruction to leave the probe out, e.g. "set PUBLIC_URL= for this command". */
  readonly howNotToProbe: string;
  /** The setting of the days to retain, e.g. `USAGE_DAYS`. */
  readonly retainSetting: string;
  /** What a process does that says that it stops, e.g. "stops with SIGTERM". */
  readonly howItStops: string;
  /** The instruction to have no time without a process, e.g. "keep a server running". */
  readonly howToAvoidStops: string;
}

/** A part of a phrase. A string is text, whatever it looks like. */
type Part =
  | string
  | { readonly kind: "date" | "path" | "code"; readonly text: string }
  | { readonly kind: "program"; readonly name: keyof ProgramNames };

/** A sentence, or a piece of one. */
export type Phrase = readonly Part[];

/** A line of a list, and the lines below it. */
export interface Item {
  readonly line: Phrase;
  readonly below?: readonly Phrase[];
}

/**
 * The tag of a template: returns the phrase of its text, and of the parts and phrases in it. A line
 * break in the template stands for a space.
 */
export function p(
  texts: TemplateStringsArray,
  ...pieces: readonly (Part | Phrase)[]
): Phrase {
  return texts.flatMap((text, at) => [text.replaceAll(/\n */g, " "), pieces[at] ?? []].flat())
    .filter((part) => part !== "");
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

/** Returns what the program that prints a phrase has there. */
export function program(name: keyof ProgramNames): Part {
  return { kind: "program", name };
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
export function textOf(phrase: Phrase, names?: ProgramNames): string {
  return printed(phrase, names, ({ kind, text }) => kind === "code" ? `\`${text}\`` : text);
}

/** Formats a phrase as plain text for people, with dates as pages write them. */
export function titleOf(phrase: Phrase): string {
  return printed(phrase, undefined, ({ kind, text }) => kind === "date" ? dateText(text) : text);
}

export function htmlOf(phrase: Phrase, names?: ProgramNames): string {
  return printed(phrase, names, (part) => {
    switch (part.kind) {
      case "text":
        return escape(part.text);
      case "date":
        return time(part.text);
      case "path":
        return codeHtml(pathText(part.text));
      case "code":
        return codeHtml(part.text);
    }
  });
}

/**
 * Prints a phrase.
 *
 * @param names Those of the program, without which nothing that names it can be printed.
 */
function printed(
  phrase: Phrase,
  names: ProgramNames | undefined,
  print: (
    part: { readonly kind: "text" | "date" | "path" | "code"; readonly text: string },
  ) => string,
): string {
  return phrase.map((part) => {
    if (typeof part === "string") return print({ kind: "text", text: part });
    if (part.kind !== "program") return print(part);
    if (names === undefined) throw new TypeError(`no program gives ${part.name}`);
    return print({ kind: "text", text: names[part.name] });
  }).join("");
}

/** Formats the path of a route for people, e.g. "/songs/{id}" for `/songs/:id`. */
export function pathText(route: string): string {
  return route.startsWith("/") ? route.replaceAll(/\/:(\w+)/g, "/{$1}") : route;
}

export function list(phrases: readonly Phrase[], names?: ProgramNames): string {
  return listOfItems(phrases.map((line) => ({ line })), names);
}

export function listOfItems(items: readonly Item[], names?: ProgramNames): string {
  if (items.length === 0) return "";
  const lines = items.map(({ line, below = [] }) =>
    `<li>${htmlOf(line, names)}${list(below, names)}</li>`
  );
  return `<ul>\n${lines.join("\n")}\n</ul>`;
}

export function details(summary: string, html: string): string {
  return `<details><summary>${summary}</summary>\n${html}\n</details>`;
}
