/** Percent-encoding (RFC 3986 §2.1). */

/** Encodes all characters except unreserved ones (§2.3), in UTF-8. */
export function percentEncode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll(/[!'()*]/g, encodeCharacter);
}

/** Encodes one ASCII character. */
export function encodeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`;
}

/** Decodes unreserved characters. They mean the same encoded or not (§6.2.2.2). */
export function decodeUnreserved(text: string): string {
  return text.replaceAll(/%[2-7][0-9a-f]/gi, (encoded) => {
    const character = String.fromCharCode(parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : encoded;
  });
}
