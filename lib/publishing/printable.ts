/**
 * Text from outside, made harmless to show: no character of it steers a terminal, breaks a line,
 * or turns the direction of what follows.
 */

/** Controls (C0, C1), line separators, bidirectional and deprecated format controls, halves of pairs. */
const UNPRINTABLE =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}\u206a-\u206f\ufeff\ufff9-\ufffb\u{e0001}]/gu;

/** Whether a text can be shown as it is. */
export function isPrintable(text: string): boolean {
  return text.search(UNPRINTABLE) < 0;
}

/** The text on one line, with what cannot be shown escaped as in JSON: `\u202e`. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, escaped);
}

/** The same, but line breaks stay. For output as a whole; what is put into it is made one line. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** The text in quotation marks, for messages. */
export function quoted(text: string): string {
  return `"${printable(text)}"`;
}

/** The text with an underscore for each character that cannot be shown. */
export function withoutUnprintable(text: string): string {
  return text.replaceAll(UNPRINTABLE, "_");
}

function escaped(char: string): string {
  const units = Array.from({ length: char.length }, (_, at) => char.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
