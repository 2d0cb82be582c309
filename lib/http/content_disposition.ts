/** The Content-Disposition field (RFC 6266). */

import { percentEncode } from "./percent_encoding.ts";

/**
 * Returns a Content-Disposition for inline display, with a file name for saving.
 *
 * @param filename Any text without control characters.
 * @returns e.g. `inline; filename="a.mp3"`. If the name is not ASCII, an ASCII fallback comes first,
 *   for recipients that do not support the extended form of RFC 8187 after it.
 */
export function inlineDisposition(filename: string): string {
  const plain = filename.replaceAll(/[^\x20-\x7e]/gu, "_");
  const quoted = `inline; filename="${plain.replaceAll(/["\\]/g, "\\$&")}"`;
  // Some recipients percent-decode the plain form (RFC 6266, appendix D).
  if (plain === filename && !filename.includes("%")) return quoted;
  return `${quoted}; filename*=UTF-8''${percentEncode(filename)}`;
}
