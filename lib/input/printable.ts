/**
 * Making untrusted text safe to print: no character controls a terminal, breaks a line, or changes
 * the direction of the text after it.
 */

import { readOr } from "../lifecycle/any_value.ts";

/**
 * Controls (C0, C1), line separators, bidirectional and deprecated format controls, lone
 * surrogates.
 */
const UNPRINTABLE =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}\u206a-\u206f\ufeff\ufff9-\ufffb\u{e0001}]/gu;

/**
 * Characters that take no room or are blank, by which two names may differ unseen. Not those by
 * which emoji and many scripts join letters, or choose how they look.
 */
const UNSEEN =
  /(?![\u200c\u200d\u180b-\u180f\ufe00-\ufe0f\u{e0020}-\u{e01ef}])[\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** All that is not seen, or looks like a space. */
const UNCLEAR = /(?! )[\p{Default_Ignorable_Code_Point}\p{Zs}\u2800]/gu;

/** Returns whether a text can be printed as it is. */
export function isPrintable(text: string): boolean {
  return text.search(UNPRINTABLE) < 0;
}

/**
 * Returns the text on one line, with unprintable and unseen characters escaped as in JSON: `\n`,
 * `\u202e`, `\u200b`.
 */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, escaped).replaceAll(UNSEEN, escaped);
}

/** Escapes unprintable characters, but keeps line breaks. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

export function quoted(text: string): string {
  return `"${printable(text)}"`;
}

/** Quotes a value so that each character can be told from others. */
export function quotedClearly(text: string): string {
  return `"${printable(text).replaceAll(UNCLEAR, escaped)}"`;
}

/** Returns an invalid URL or other setting without anything that may be a user or password. */
export function withoutPassword(text: string): string {
  return text.replace(/^([\w+.-]+:\/\/)?.*@/s, "$1…@")
    .replace(/^([\w+.-]+:\/\/[^/:]*:)(?!\d+(?:[/?#]|$)).*/s, "$1…"); // it may not be a port
}

/** Returns an invalid name without what follows it, which may be a value, and a secret. */
export function withoutValue(name: string): string {
  return name.replace(/[^\w-].*/s, "…");
}

/** Returns an error's message, followed by that of its cause if it has one. */
export function messageOf({ message, cause }: Pick<Error, "message" | "cause">): string {
  const reason = readOr(
    undefined,
    () => cause instanceof Error ? printable(cause.message) : undefined,
  );
  return reason === undefined ? message : `${message} (${reason})`;
}

/** Replaces each unprintable character with an underscore. */
export function withoutUnprintable(text: string): string {
  return text.replaceAll(UNPRINTABLE, "_");
}

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(char: string): string {
  const short = SHORT[char];
  if (short !== undefined) return short;
  const units = Array.from({ length: char.length }, (_, at) => char.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/** Quotes an argument for a shell, where that is needed. */
export function shellWord(argument: string): string {
  return /^[\w./,=:@%+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}
