/**
 * Media types, as stated by publishers.
 */

const MEDIA_TYPE =
  /^(audio|video)\/[\w.+-]+(; ?[\w-]+=([\w.+-]+|"[\x20-\x21\x23-\x5b\x5d-\x7e]*"))*$/i;

/** Parses an audio or video type. The name becomes lower case; parameters may be case-sensitive. */
export function parseMediaType(text: string): string | undefined {
  return MEDIA_TYPE.test(text) ? text.replace(/^[^;]*/, (type) => type.toLowerCase()) : undefined;
}
