/**
 * The Content-Disposition field (RFC 6266).
 */

/**
 * Says that a representation is to be shown in place, and under which name it is to be saved.
 *
 * @param filename Any text without control characters.
 * @returns e.g. `inline; filename="a.mp3"`; for a name beyond ASCII also the extended form of
 *   RFC 8187, with a plain fallback before it for recipients that do not know it.
 */
export function inlineDisposition(filename: string): string {
  const plain = filename.replaceAll(/[^\x20-\x7e]/gu, "_");
  const quoted = `inline; filename="${plain.replaceAll(/["\\]/g, "\\$&")}"`;
  // A percent sign in the plain form is decoded by some recipients (RFC 6266, appendix D).
  if (plain === filename && !filename.includes("%")) return quoted;
  return `${quoted}; filename*=UTF-8''${encodeExtended(filename)}`;
}

/** RFC 8187 §3.2.1: encodeURIComponent leaves three characters that are no attr-char. */
function encodeExtended(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
